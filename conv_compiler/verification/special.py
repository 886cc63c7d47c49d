# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What NaN, infinities and numbers too large may do to a result, and whether that is all they did.

The definition says which elements become none of the type's finite numbers. Kernels may make NaN of
more (docs/numerics.md): they multiply pads and what no output reads by 0, and 0 times infinity or
NaN is NaN. `may_spread` says of which; outside of these every element is the definition's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.dtypes import CONVERSIONS
from conv_compiler.verification.comparison import Comparison, check_shape
from conv_compiler.verification.reference import (
    as_multiplied,
    axes_of,
    exact_sums,
    finished,
    multiplicand,
    reorder,
    spread,
)
from conv_compiler.verification.tolerance import (
    Tolerance,
    after_elementwise,
    after_operand_ops,
    tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import DType
    from conv_compiler.targets.short_sums import ShortSums

    Array = NDArray[Any]


def may_spread(problem: ConvProblem, first: Array, second: Array) -> Array:
    """Elements of the result that what is not finite in an operand may make NaN.

    Those with its group, and its image and its channel where the result has them, at any pixel or
    tap: never another image's, group's or channel's.
    """
    letters: str = getattr(problem.layout_row.grouped, problem.tensors[2])
    found: Array = np.zeros(problem.shape(letters), bool)
    for number, array in enumerate((first, second)):
        infinite = ~np.isfinite(multiplicand(problem, number, array).astype(np.float64))
        if not infinite.any():
            continue
        own: str = getattr(problem.layout_row.grouped, problem.tensors[number])
        shared = "".join(letter for letter in letters if letter in own and letter != "*")
        inner = "".join(letter for letter in own if letter not in shared)
        seen = reorder(infinite.reshape(problem.shape(own)), own, shared + inner, problem.ndim)
        seen = np.asarray(seen.any(axis=tuple(range(len(shared), seen.ndim))))
        sizes = dict(zip(shared, seen.shape, strict=True))
        # Its axes are in the result's order: those the result has beside them have one element.
        found |= seen.reshape([sizes.get(name, 1) for name in axes_of(letters, problem.ndim)])
    return found.reshape(problem.result_shape)


def compare_special(
    problem: ConvProblem,
    got: Array,
    operands: tuple[Array, ...],
    plain: tuple[Array, ...],
    short: ShortSums | None = None,
) -> tuple[Comparison, Tolerance]:
    """Hold the result of `special` data against the reference; `plain` are the same operands with
    integers in place of what is special.

    Wrong is an element
    - that is finite where the definition, rounded to the result's type, is not;
    - that is another infinity, or a number where the definition is NaN;
    - that is NaN where the definition is finite, but where `may_spread` or where a sum of products'
      sizes, or what ops make of it, is above the accumulator's largest number;
    - that is another number: where no special number is among its products as for integers, else by
      more than n roundings of the sum of its products' sizes. An instruction that keeps few bits of
      a sum (`short`) loses a share of that size besides. By as much it may be on the other side of
      the least number that rounds to infinity.
    """
    check_shape(problem, got, problem.result_shape)
    dtype = problem.result_type.to_numpy()
    with np.errstate(all="ignore"):
        first, second, *extra = operands
        sums, size = exact_sums(problem, first, second), _sizes(problem, first, second)
        want = finished(problem, sums, *extra)
        rounded = want.astype(dtype).astype(np.float64)
        lost = short.of_sizes() if short else 0.0
        allowed = _allowed(problem, sums, size, operands, plain, lost)
        found = got.astype(np.float64)
        error = np.abs(found - want)
        # Where nothing special is, integers are as exact as ever.
        as_integers = allowed.absolute == 0
        error = np.where(as_integers, np.abs(found - rounded), error)
        near = error <= np.where(as_integers, 0, allowed.absolute + allowed.relative * np.abs(want))
        # Sums that few bits may put on the other side of the least number that rounds to infinity.
        least = _least_infinite(problem.result_type)
        straddles = ~as_integers & (np.abs(np.abs(want) - least) < lost * size)
        infinite = straddles & np.isinf(found) & (np.signbit(found) == np.signbit(want))
        overflows = _reach(problem, size, extra) >= _most(problem.accumulator_type)
        spreads = np.isnan(found) & may_spread(problem, first, second)
        as_nan = spreads | (np.isnan(found) & (overflows | bool(problem.terms)))
        right = np.select(
            [np.isnan(rounded), np.isinf(rounded)],
            [np.isnan(found), (found == rounded) | as_nan | (straddles & near)],
            near | infinite | spreads | (overflows & ~np.isfinite(found)),
        )
    wrong = ~right.astype(bool)
    worst = ""
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        index = ", ".join(map(str, at))
        worst = f"[{index}] is {float(found[at])!r}, expected {float(rounded[at])!r}"
    finite = np.isfinite(error)
    return (
        Comparison(
            elements=wrong.size,
            wrong=int(wrong.sum()),
            max_error=float(error[finite].max(initial=0.0)),
            largest=float(np.abs(rounded[np.isfinite(rounded)]).max(initial=0.0)),
            worst=worst,
        ),
        allowed,
    )


def _reach(problem: ConvProblem, size: Array, extra: Sequence[Array]) -> Array:
    """How large a number on the way to an element may be, of the sizes of sums: a later op may make
    a finite one of it, and NaN where it was none."""
    if problem.fused is None:
        return size
    d = np.abs(spread(problem, extra[0].astype(np.float64))) if extra else None
    # Of either sign: `leaky_relu` makes more of a sum below 0. And d may be NaN.
    either = (problem.fused.magnitude(one, d) for one in (size, -size))
    reach: Array = np.fmax(size, np.fmax(*either))
    return reach


def _most(row: DType) -> float:
    """The largest number of the type that sums and ops on them are computed in."""
    return float(np.finfo(row.to_numpy()).max)


def _least_infinite(row: DType) -> float:
    """The least number that rounds to infinity in a type: the largest one and half of its step."""
    most = float(ml_dtypes.finfo(row.to_numpy()).max)
    return most + math.ldexp(0.5, math.frexp(most)[1] - 1 - row.mantissa_bits)


def _sizes(problem: ConvProblem, first: Array, second: Array) -> Array:
    """Sums of the products' absolute values."""
    sizes = [
        np.abs(multiplicand(problem, number, array).astype(np.float64))
        for number, array in enumerate((first, second))
    ]
    return exact_sums(as_multiplied(problem), *sizes)


def _allowed(
    problem: ConvProblem,
    sums: Array,
    size: Array,
    operands: tuple[Array, ...],
    plain: tuple[Array, ...],
    lost: float,
) -> Tolerance:
    """As for the plain operands, and where sums are others n roundings of their products' sizes
    (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2), and a
    share of that size that is `lost` besides."""
    allowed = after_operand_ops(problem, tolerance(problem, "special"), *plain[:2])
    unit = 2.0 ** -(problem.accumulator_type.mantissa_bits + 1)
    off = problem.terms or CONVERSIONS.get(problem.compute)
    a_product = summed_products(problem) * unit + (off.error if off else 0.0) + lost
    others = (sums != exact_sums(problem, *plain[:2])) & np.isfinite(size)
    absolute = allowed.absolute + np.where(others, a_product * size, 0.0)
    finite = [np.where(np.isfinite(x), x, 0) for x in (sums, *operands[2:])]
    allowed = Tolerance(relative=2.0 ** -(problem.result_type.mantissa_bits + 1), absolute=absolute)
    return after_elementwise(problem, allowed, finite[0], finite[1] if finite[1:] else None)
