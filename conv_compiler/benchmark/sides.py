# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One side of a comparison: a call on data of ours, or a program that measures itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from conv_compiler.benchmark.turns import Call, Clock, Plan, times_of
from conv_compiler.errors import ConvError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

    Array = NDArray[Any]


class PeerRefused(ConvError):
    """A peer is not on this machine, or has no kernel for a problem."""


class PeerWrong(ConvError):
    """A program says of itself that its result is wrong."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is computed, on which data, for which target and on which device (`runtime/devices`)."""

    problem: ConvProblem
    operands: tuple[Array, ...]
    target: Target
    device: str


class Side(Protocol):
    """What is compared: `detail` names the kernel, `of` what its times are of.

    `result` computes once and gives an array in the problem's shape, or None where a program has
    compared its result itself; it raises PeerWrong where that found it wrong.
    """

    @property
    def detail(self) -> str: ...
    @property
    def of(self) -> str: ...
    @property
    def most_rounds(self) -> int | None: ...
    def result(self) -> Array | None: ...
    def first_seconds(self, clock: Clock) -> float: ...
    def times(self, plan: Plan, clock: Clock) -> Sequence[float]: ...


@dataclass(frozen=True, kw_only=True)
class CallSide:
    """A call in this process, which returns when the device is done; `to_numpy` reads what it
    returns."""

    detail: str
    call: Call
    to_numpy: Callable[[Any], Array]
    of: str = "calls"
    most_rounds: int | None = None

    def result(self) -> Array:
        """What a call computes."""
        return self.to_numpy(self.call())

    def first_seconds(self, clock: Clock) -> float:
        """Seconds of one call."""
        start = clock()
        self.call()
        return clock() - start

    def times(self, plan: Plan, clock: Clock) -> list[float]:
        """The seconds of a round's calls."""
        return times_of(self.call, plan, clock)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run of a program printed: its kernel, and the kernel's time in seconds."""

    detail: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ProgramSide:
    """A program that makes its own data, checks its result and prints the time of its kernel.

    It repeats a kernel itself, so that a few runs will do.
    """

    run: Callable[[], Measured]
    most_rounds: int | None
    of: str = "kernels"

    @cached_property
    def _first(self) -> Measured:
        return self.run()

    @property
    def detail(self) -> str:
        """The kernel that the program took."""
        return self._first.detail

    def result(self) -> None:
        """Run once: the program compares by itself."""
        _ = self._first

    def first_seconds(self, clock: Clock) -> float:
        """The kernel's seconds; a program has warmed up by itself."""
        return self._first.seconds

    def times(self, plan: Plan, clock: Clock) -> list[float]:
        """The time that a run prints."""
        return [self.run().seconds]
