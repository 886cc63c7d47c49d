# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Is the largest absolute value beside a result right?

It may be off by as much as any of the numbers it is the largest of: maxima differ by no more than
what they are taken of.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.amax import in_front
from conv_compiler.verification.reference import finished
from conv_compiler.verification.tolerance import (
    Tolerance,
    after_denormals,
    after_elementwise,
    after_operand_ops,
    below_normal,
    tolerance,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.short_sums import ShortSums
    from conv_compiler.verification.comparison import Comparison

    Array = NDArray[Any]


def numbers_of(problem: ConvProblem, sums: Array, extra: tuple[Array, ...]) -> Array:
    """The numbers in front of a last factor, of exact sums."""
    inner = in_front(problem)
    return finished(inner, sums, *extra[: inner.takes_d])


def tolerance_of(
    problem: ConvProblem,
    data: str,
    arithmetic: tuple[Collection[str], ShortSums | None],
    operands: tuple[Array, ...],
    sums: Array,
) -> Tolerance:
    """How far off each of these numbers may be. `arithmetic` is what instructions make of denormals
    and of sums."""
    flushed, short = arithmetic
    inner = in_front(problem)
    first, second, *extra = operands
    allowed = after_operand_ops(inner, tolerance(inner, data, short), first, second)
    below = 0.0
    if data == "denormal":
        allowed = after_denormals(inner, first, second, flushed, short)
        below = below_normal(inner, inner.accumulator_type, flushed)
    return after_elementwise(inner, allowed, sums, extra[0] if inner.takes_d else None, below)


def with_largest(
    problem: ConvProblem,
    found: Comparison,
    got: Array,
    numbers: Array,
    allowed: Tolerance | None = None,
    *,
    told: bool = True,
) -> Comparison:
    """The comparison of a result with that of its largest absolute value: NaN where a number is,
    infinite where the largest is, else near. Without a tolerance finite ones are not compared. NaN
    will do where the result has not `told` which numbers are.

    Raises InvalidArray for another shape or type.
    """
    dtype = problem.accumulator_type.to_numpy()
    if got.shape != () or got.dtype != dtype:
        raise InvalidArray(f"amax {got.shape} {got.dtype}: not the problem's; expected () {dtype}")
    want, largest = float(np.max(np.abs(numbers))), float(got)
    error = abs(largest - want)
    if np.isnan(largest) and not told:
        right = True
    elif np.isnan(want) or np.isinf(want):
        right = largest == want or (np.isnan(largest) and np.isnan(want))
    elif allowed is None:
        right = not np.isnan(largest)
    else:
        right = error <= allowed.largest_absolute + allowed.relative * want
    if right:
        return replace(found, elements=found.elements + 1)
    return replace(
        found,
        elements=found.elements + 1,
        wrong=found.wrong + 1,
        max_error=max(found.max_error, error if np.isfinite(error) else 0.0),
        worst=found.worst or f"amax is {largest!r}, expected {want!r}",
    )
