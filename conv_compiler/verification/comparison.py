# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a result differs from the reference, element by element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.directions import COMPUTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.verification.tolerance import Tolerance

    Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a result differs from the reference; `largest` is the largest |reference|."""

    elements: int
    wrong: int
    max_error: float
    largest: float
    worst: str

    def with_touched(self, count: int) -> Comparison:
        """The same where so many elements beside the result have changed."""
        if not count:
            return self
        worst = self.worst or f"{count} elements beside the result have changed"
        return replace(self, elements=self.elements + count, wrong=self.wrong + count, worst=worst)


def compare(problem: ConvProblem, got: Array, want: Array, allowed: Tolerance) -> Comparison:
    """Hold a kernel's result against the reference's; NaN and infinity are wrong.

    `max_error` is the largest |got - reference|, with the reference rounded to the result's type
    where equality is asked for; `worst` says where the worst wrong element lies. Raises
    InvalidArray for another shape or type.
    """
    check_shape(problem, got, want.shape)
    dtype = problem.result_type.to_numpy()
    wanted = want.astype(dtype).astype(np.float64) if allowed.exact else want.astype(np.float64)
    error = np.abs(got.astype(np.float64) - wanted)
    excess = error - (allowed.absolute + allowed.relative * np.abs(wanted))
    wrong = ~(excess <= 0)
    worst = ""
    if wrong.any():
        at = np.unravel_index(np.where(np.isnan(excess), np.inf, excess).argmax(), excess.shape)
        index = ", ".join(map(str, at))
        worst = f"[{index}] is {float(got[at])!r}, expected {float(wanted[at])!r}"
    return Comparison(
        elements=wrong.size,
        wrong=int(wrong.sum()),
        max_error=float(error.max(initial=0)),
        largest=float(np.abs(wanted).max(initial=0)),
        worst=worst,
    )


def check_shape(problem: ConvProblem, got: Array, shape: tuple[int, ...]) -> None:
    """Raise InvalidArray unless a result has this shape and the problem's type."""
    dtype = problem.result_type.to_numpy()
    if got.shape != shape or got.dtype != dtype:
        raise InvalidArray(
            f"{COMPUTED[problem.direction][1]} {got.shape} {got.dtype}: not the problem's; "
            f"expected {shape} {dtype}"
        )
