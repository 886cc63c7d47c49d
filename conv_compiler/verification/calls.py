# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The call of a kernel that is looked at: what it gives, and what it touches besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from conv_compiler.runtime.kernel import to_numpy
from conv_compiler.verification.slices import cut_out, memory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.runtime.times import Times

    Array = NDArray[Any]


class Called(Protocol):
    """What is called as the kernel of a problem: a `Kernel`, or one result of a layer's."""

    @property
    def device(self) -> str:
        """As of a `Kernel`, and so are the others."""

    @property
    def virtual(self) -> bool:
        """Whether the device executes the chip's code on the host."""

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """The result."""

    def put(self, array: Any) -> Any:
        """A device array."""

    def times(self, *operands: Any, budget: float = 0.2) -> Times:
        """Times of calls."""


def called(kernel: Called, problem: ConvProblem, placed: list[Any]) -> tuple[list[Array], int]:
    """What a call gives: the result, and its largest absolute value where that is asked for; and
    how many elements it changed beside a result that is a slice."""
    memory = memory_of(problem)
    if memory is None:
        return arrays(kernel(*placed)), 0
    into = kernel.put(memory)
    first, *others = arrays(kernel(*placed, out=[into, None] if problem.amax else into))
    found, beside = cut_out(problem, first)
    return [found, *others], beside


def arrays(given: Any) -> list[Array]:
    """Results as arrays of numpy."""
    return [to_numpy(one) for one in (given if isinstance(given, tuple) else (given,))]
