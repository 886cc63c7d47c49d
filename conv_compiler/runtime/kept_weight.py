# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that rearrange a weight in a function of its own, and a weight kept for many calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from conv_compiler.errors import InvalidArray, InvalidArtifact
from conv_compiler.problem.directions import KEEP_WEIGHT, STATED_KEPT
from conv_compiler.runtime import forks
from conv_compiler.runtime.arrays import check_operands
from conv_compiler.runtime.loaded_kernel import REFUSALS, Kernel


class KeepingKernel(Kernel):
    """The kernel of a problem with `kept_weight`.

    It is called as any other, and rearranges the weight in each call. `keep` does so once.
    """

    __slots__ = ("_keeper", "_main", "_place")

    def __init__(
        self, path: Path, data: bytes, device: str, built_for: str, name: str = "main"
    ) -> None:
        super().__init__(path, data, device, built_for, name)
        try:
            self._main, self._keeper = self._sibling(name), self._sibling(KEEP_WEIGHT)
            self._place = int(self._loaded[0].lookup_function(name).reflection[STATED_KEPT])
            taken, kept = self._main.operands, self._keeper.results
            if taken[self._place :][: len(kept)] != kept:
                raise ValueError("what is kept is not what is taken")
        except REFUSALS as error:
            raise InvalidArtifact(
                f"artifact {path.name}: keeps a weight, and its functions do not fit one another; "
                "compile it again"
            ) from error
        behind = taken[self._place + len(kept) :]
        self.operands = (*taken[: self._place], *self._keeper.operands, *behind)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Run once, as `Kernel` does."""
        if len(operands) != len(self.operands):
            raise self._miscounted(operands)
        place = self._place
        others = (*operands[:place], *operands[place + 1 :])
        return self.keep(operands[place])._on(others, out, operands)

    def keep(self, weight: Any) -> KeptWeight:
        """The kernel of the other operands, with a weight that is rearranged now and not in calls.

        The weight is an array of any kind that a call takes. Change it, and keep it again: where
        kernels read a weight as it is, a change is seen, and where it was rearranged it is not.
        Raises InvalidArray for another shape, type or device.
        """
        keeper = self._keeper
        keeper._ready()
        self._main._ready()
        (tensor,) = keeper.operands
        taken = keeper._taken(tensor, weight)
        check_operands((tensor,), (taken,), keeper._config.device, self.device)
        views = keeper._run([taken])
        kept = [*map(keeper._device_array, keeper.results, views)]
        return KeptWeight.of(self._main, self._place, kept)

    def run_at(self, *addresses: int) -> NoReturn:
        """Refused by InvalidArray: what is kept has addresses of its own."""
        raise _no_addresses(self)


class KeptWeight(Kernel):
    """A kernel with its weight, which `KeepingKernel.keep` makes: it takes the other operands.

    Numpy operands give a numpy array, and device arrays a device array, wherever the weight came
    from. A child made by fork keeps its weight anew.
    """

    __slots__ = ("_kept", "_main", "_place")

    _kept: Sequence[Any]
    _main: Kernel
    _place: int

    @classmethod
    def of(cls, main: Kernel, place: int, kept: Sequence[Any]) -> KeptWeight:
        """The kernel `main` with what is kept, from operand `place` on."""
        made = main._copy(cls)
        made._main, made._place, made._kept = main, place, kept
        made.operands = (*main.operands[:place], *main.operands[place + len(kept) :])
        return made

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Run once on the operands beside the weight, as `Kernel` does."""
        if len(operands) != len(self.operands):
            raise self._miscounted(operands)
        return self._on(operands, out, operands)

    def _on(self, others: Sequence[Any], out: Any, like_these: Sequence[Any]) -> Any:
        place = self._place
        self._ready()
        return self._main._call((*others[:place], *self._kept, *others[place:]), out, like_these)

    def run_at(self, *addresses: int) -> NoReturn:
        """Refused by InvalidArray: what is kept has addresses of its own."""
        raise _no_addresses(self)

    def _ready(self) -> None:
        """InvalidArray in a child made by fork, whose devices do not hold what its parent kept."""
        self._enter()
        if self._generation != forks.generation():
            raise InvalidArray(
                f"kernel {self.path.name}: its weight was kept before this process was forked; "
                "keep it again"
            )


def _no_addresses(kernel: Kernel) -> InvalidArray:
    return InvalidArray(
        f"kernel {kernel.path.name}: keeps its weight and takes no addresses; compile it without "
        "kept_weight"
    )
