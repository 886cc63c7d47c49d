# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Is each result of a layer's module right? By the data, the reference and the tolerance that its
problem has alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from conv_compiler.runtime.kernel import load
from conv_compiler.verification.linked_report import LinkedReport
from conv_compiler.verification.slices import call_operands
from conv_compiler.verification.verify import check_size, verify_kernel

if TYPE_CHECKING:
    from conv_compiler.artifacts.layer_artifact import LayerArtifact
    from conv_compiler.problem.layer import Layer
    from conv_compiler.runtime.kernel import Kernel
    from conv_compiler.runtime.times import Times


@dataclass(frozen=True)
class _OneResult:
    """A layer's kernel as that of one of its problems.

    `others` gives all operands of a call with so many images, None where that is fixed. Those of
    the problem are replaced.
    """

    kernel: Kernel
    results: slice
    places: tuple[int, ...]
    others: Callable[[int | None], list[Any]]

    @property
    def device(self) -> str:
        return self.kernel.device

    @property
    def virtual(self) -> bool:
        return self.kernel.virtual

    def put(self, array: Any) -> Any:
        return self.kernel.put(array)

    def _all(self, operands: Sequence[Any]) -> list[Any]:
        own = list(zip(self.places, operands, strict=True))
        batches = (
            array.shape[self.kernel.operands[place].shape.index(None)]
            for place, array in own
            if None in self.kernel.operands[place].shape
        )
        given = list(self.others(next(batches, None)))
        for place, array in own:
            given[place] = array
        return given

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        outs: list[Any] = [None] * len(self.kernel.results)
        outs[self.results] = out if isinstance(out, list) else [out] * len(outs[self.results])
        into = None if out is None else outs if len(outs) > 1 else outs[0]
        given = self.kernel(*self._all(operands), out=into)
        found = given[self.results] if isinstance(given, tuple) else (given,)
        return found if len(found) > 1 else found[0]

    def times(self, *operands: Any, budget: float = 0.2) -> Times:
        return self.kernel.times(*self._all(operands), budget=budget)


def verify_layer(
    layer: Layer,
    target: str = "cpu",
    split_k: int | str = "auto",
    *,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.2,
    tuned: bool = True,
) -> LinkedReport:
    """Compile a layer, run it on known data and compare each of its results with the reference.

    Args:
        layer: What to compute.
        target, split_k, tuned: As in `compile_layer`.
        data, seed, device, runs, budget: As in `verify`. The module runs for each of its results on
            the data of that result's problem.

    Returns:
        The report. A wrong result is no exception; `report.require()` raises Mismatch for one.

    Raises:
        InvalidArray: `runs` is out of range, or the operands exceed the memory of this machine.
        ConvError: What `compile_layer` and `load` raise.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> report = cc.verify_layer(cc.Layer.of(problem), target="cpu", budget=0)
        >>> [one.verdict for one in report.reports]
        ['right (exact)', 'right (exact)', 'right (exact)']
    """
    from conv_compiler.compiler.layers import compile_layer

    for one in layer.problems:
        check_size(one, runs)
    artifact = compile_layer(layer, target, split_k, tuned=tuned)
    return verify_layer_artifact(artifact, data, seed, device, runs, budget)


def verify_layer_artifact(
    artifact: LayerArtifact,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.0,
) -> LinkedReport:
    """`verify_layer` of what is compiled."""
    kernel, layer = load(artifact, device), artifact.layer

    @cache
    def drawn(images: int | None) -> list[Any]:
        """Operands of the layer, of so many images where that is open."""
        found: list[Any] = [None] * len(layer.operand_names)
        for number, one in enumerate(layer.problems):
            called = one if images is None else one.called_with(images)
            arrays = call_operands(called, "integers" if data == "special" else data, seed)
            for place, array in zip(layer.operands_of(number), arrays, strict=True):
                found[place] = kernel.put(array)
        return found

    results = [
        _OneResult(kernel, layer.results_of(number), layer.operands_of(number), drawn)
        for number in range(len(layer.problems))
    ]
    reports = tuple(
        verify_kernel(one, result, data, seed, runs)
        for one, result in zip(artifact.artifacts, results, strict=True)
    )
    times = None
    if budget and not kernel.virtual:
        times = kernel.times(*drawn(layer.problems[0].n), budget=budget)
    return LinkedReport(reports=reports, times=times)
