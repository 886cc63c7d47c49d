# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a right kernel may be from the reference, from the problem alone."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.problem.canonical import summed_products
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES
from conv_compiler.verification.inputs import is_exact, is_flushed
from conv_compiler.verification.reference import as_multiplied, exact_sums, multiplicand, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import DType
    from conv_compiler.targets.short_sums import ShortSums

    Array = NDArray[Any]

_CONFIDENCE = 8.0
# Roundings of one elementwise op, each of values no larger than those of the op on absolute values.
# Functions such as exp count for several: compilers may approximate them to a few units.
_ELEMENTWISE_ROUNDINGS = 8.0
# That kernels of short sums copy at a time.
_PIECE_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """|got - reference| may be up to relative * |reference| + absolute; 0 and 0 mean equal.

    `absolute` may be an array with a figure for each element.
    """

    relative: float = 0.0
    absolute: Any = 0.0

    @property
    def exact(self) -> bool:
        """Whether nothing but equality passes."""
        return self.relative == 0 and not np.any(self.absolute)

    @property
    def largest_absolute(self) -> float:
        """`absolute`, or the largest of it; 0 of no elements."""
        return float(np.max(self.absolute, initial=0.0))

    def shaped(self, shape: tuple[int, ...]) -> Tolerance:
        """The same for elements in another shape."""
        figures = self.absolute
        return replace(self, absolute=np.reshape(figures, shape)) if np.ndim(figures) else self

    def to_json(self) -> dict[str, float]:
        """Plain values; of the absolute ones the largest."""
        return {"relative": self.relative, "absolute": self.largest_absolute}


def _largest(array: Any) -> float:
    """The largest absolute value; 0 of no elements, as of an empty batch."""
    return float(np.max(np.abs(array), initial=0.0))


def tolerance(
    problem: ConvProblem, data: str = "random", short: ShortSums | None = None
) -> Tolerance:
    """How far a right kernel may be from the reference, on data of `inputs`.

    Integers must be equal. Random data, with u the unit roundoff of a type and n = gemm_k:
        relative = u(weight)
        absolute = u(accumulator) * min(n, 8 sqrt(n)) * sqrt(n)
    and half the smallest denormal of an 8-bit weight. The first is the one rounding into the weight
    type. The second bounds the n roundings of the sum in any order. n u is the worst case (N. J.
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2); Composable
    Kernel's tests use it too. 8 sqrt(n) u holds but for one sum in 10**13 (Higham and Mary, SIAM J.
    Sci. Comput. 41(5), 2019, theorem 2.4 with lambda = 8). Both are relative to the size of the
    partial sums: at most about sqrt(n), as products of data from [-1, 1) have a deviation of 1/3.
    Sums split into parts have fewer roundings in a row, so a split factor needs no more and is
    given no more.

    Products in terms (dtypes.TERMS) make sums of as many times more numbers. They are themselves
    off, as are those of numbers that an instruction rounds (dtypes.CONVERSIONS), each in a way of
    its own: by `error` at most, `deviation` as a rule. By Bernstein's inequality, with the same
    confidence:
        absolute += min(n error, 8 sqrt(n) deviation + 8**2 / 6 error)

    An instruction that keeps few bits of a sum (`short`) loses the others: `ShortSums.of_products`
    has the bound. Of integers it loses nothing, as `inputs` draws them.
    """
    if data in ("integers", "special") or problem.data_type.is_integer:
        return Tolerance()
    n, terms = summed_products(problem), problem.terms
    summed = n * (terms.count if terms else 1)
    roundings = min(summed, _CONFIDENCE * math.sqrt(summed))
    sums = math.sqrt(n) * 2.0 ** -(problem.accumulator_type.mantissa_bits + 1)
    if problem.accumulator_type.name == "f64":
        roundings *= 2  # the reference's sums are rounded as often
    products = 0.0
    if off := terms or CONVERSIONS.get(problem.compute):
        usual = _CONFIDENCE * math.sqrt(n) * off.deviation
        products = min(n * off.error, usual + _CONFIDENCE**2 / 6 * off.error)
    if short:
        count = _in_pieces(problem)
        products += short.of_products(count, _CONFIDENCE, evenly=data == "random")
    return Tolerance(
        relative=2.0 ** -(problem.result_type.mantissa_bits + 1),
        absolute=roundings * sums + products + _half_denormal(problem),
    )


def _in_pieces(problem: ConvProblem) -> int:
    """Products of an element where source channels come in pieces of 16 bytes."""
    source = problem.k if problem.direction == "bwd_data" else problem.c
    piece = 8 * _PIECE_BYTES // problem.data_type.bits
    return summed_products(problem) // source * (-(-source // piece) * piece)


def _half_denormal(problem: ConvProblem) -> float:
    """What a result is off by where it is rounded below its normal range, of 8-bit results.

    Denormals of wider types lie below what the sums are off by.
    """
    return below_normal(problem, problem.result_type, ()) if problem.result_type.is_f8 else 0.0


def after_operand_ops(
    problem: ConvProblem, allowed: Tolerance, first: Array, second: Array
) -> Tolerance:
    """What a tolerance becomes where the operands go through ops before they are multiplied.

    Nothing changes without ops, nor where they leave integers whose sums are exact. Else the
    figure for random data from [-1, 1) grows with the partial sums. Their deviation is 1/3 times
    the largest of either operand as it is multiplied. Their mean is the product of the operands'
    means, for an op may leave one sign.
    """
    if problem.operand_ops == (None, None) and (allowed.exact or not problem.block_scales):
        return allowed
    if allowed.exact and is_exact(problem, first, second):
        return allowed
    return scaled_to(problem, first, second)


def scaled_to(
    problem: ConvProblem, first: Array, second: Array, short: ShortSums | None = None
) -> Tolerance:
    """The tolerance of random data with the size of partial sums that operands make.

    Scales make some blocks much larger than others, so of block scales each element has its own:
    u(accumulator) min(n, 8 sqrt(n)) times the sum of its products' absolute values, which no
    partial sum is above.
    """
    multiplied = [
        multiplicand(problem, number, array).astype(np.float64)
        for number, array in enumerate((first, second))
    ]
    if problem.block_scales:
        n = summed_products(problem)
        unit = 2.0 ** -(problem.accumulator_type.mantissa_bits + 1)
        sizes = exact_sums(as_multiplied(problem), *map(np.abs, multiplied))
        return Tolerance(
            relative=2.0 ** -(problem.result_type.mantissa_bits + 1),
            absolute=unit * min(n, _CONFIDENCE * math.sqrt(n)) * sizes,
        )
    deviation = math.prod(map(_largest, multiplied))
    mean = math.prod(abs(float(array.mean())) for array in multiplied) if deviation else 0.0
    random, step = tolerance(problem, "denormal", short), _half_denormal(problem)
    growth = deviation + math.sqrt(summed_products(problem)) * mean
    return replace(random, absolute=(random.absolute - step) * growth + step)


def after_elementwise(
    problem: ConvProblem,
    allowed: Tolerance,
    sums: Array,
    d: Array | None = None,
    below: float = 0.0,
) -> Tolerance:
    """What a tolerance on sums becomes behind the problem's elementwise op.

    Nothing changes where the op is exact in f32 (f64 of f64 data) on exact sums. Else a weight may
    be off by what the op makes of a sum that is off by its tolerance, and by its own roundings:

        absolute = |op(sum +- absolute) - op(sum)| + 8 u(f32) op(|sum|, |d|, |parameters|)

    Eight roundings are those of one op; a chain has so many for each. Integers may be off by one
    step more, for this may move a value over a half. Floats may be off by half a step of the
    result's denormals. `below` is what a rounding may be off by below the normal range, where sums
    are as small as that.
    """
    fused = problem.fused
    if fused is None:
        return allowed
    if d is not None:
        d = spread(problem, d)
    computed = DTYPES[problem.accumulator_type.elementwise]
    exact = [None if x is None else x.astype(np.float64) for x in (sums, d)]
    want = fused.on_arrays(*exact)
    # Exact is what a wider type does not change.
    other = np.longdouble if computed.name == "f64" else computed.to_numpy()
    beside = fused.on_arrays(*(None if x is None else x.astype(other) for x in (sums, d)))
    if allowed.exact and np.array_equal(beside, want):
        return allowed
    off = [fused.on_arrays(exact[0] + sign * allowed.absolute, exact[1]) for sign in (-1, 1)]
    unit = 2.0 ** -(computed.mantissa_bits + 1)
    count = _ELEMENTWISE_ROUNDINGS * len(fused.steps)
    roundings = count * (unit * fused.magnitude(*exact) + below)
    step = 1.0 if problem.result_type.is_integer else 0.0
    # Below the normal range a result is rounded to a step that is no part of itself.
    roundings = roundings + below_normal(problem, problem.result_type, ())
    return Tolerance(
        relative=2.0 ** -(problem.result_type.mantissa_bits + 1) if not step else 0.0,
        absolute=np.maximum(*(np.abs(x - want) for x in off)) + roundings + step,
    )


def _least(row: DType) -> float:
    """The smallest normal number of a type of floats."""
    import ml_dtypes

    return float(ml_dtypes.finfo(row.to_numpy()).smallest_normal)


def lost_in_sums(problem: ConvProblem, flushed: Collection[str]) -> tuple[str, ...]:
    """Of `flushed` types those whose denormals lie below all normal numbers of the sums."""
    least = _least(problem.accumulator_type)
    return tuple(name for name in flushed if _least(DTYPES[name]) <= least)


def below_normal(problem: ConvProblem, row: DType, flushed: Collection[str]) -> float:
    """What one rounding to a type may be off by where the number is below its normal range."""
    if row.is_integer:
        return 0.0
    gone = lost_in_sums(problem, flushed) and _least(row) <= _least(problem.accumulator_type)
    return _least(row) if gone else _least(row) * 2.0 ** -(row.mantissa_bits + 1)


def after_denormals(
    problem: ConvProblem,
    first: Array,
    second: Array,
    flushed: Collection[str],
    short: ShortSums | None = None,
) -> Tolerance:
    """How far a right kernel may be from the reference on operands of which one is tiny.

    As on random data of that size. Below the normal range a rounding is off by half the smallest
    denormal of the type. So may n products, n sums and the result be: in as many ways up as down,
    hence by min(2n, 8 sqrt(2n)) of them in all, as in `tolerance`. A kernel may take denormals of
    the sums' range as 0 (`flushed` names the types, docs/numerics.md). Then each of these may be
    off by the smallest normal number instead, and a product whose operand is such a denormal by all
    of itself. Denormals of f16 are in the normal range of the sums: they count everywhere.
    """
    allowed = scaled_to(problem, first, second, short)
    n, sums = summed_products(problem), problem.accumulator_type
    types = lost_in_sums(problem, flushed)
    roundings = min(2 * n, _CONFIDENCE * math.sqrt(2 * n))
    absolute: Any = roundings * below_normal(problem, sums, flushed)
    absolute += below_normal(problem, problem.result_type, flushed)
    if problem.terms:  # a low part below that range may be lost whole
        largest = _largest(first) + _largest(second)
        absolute += n * largest * _least(sums)
    multiplied = problem.operand_type
    if multiplied.multiplied_only:  # of a denormal as many bits are left out as of the least normal
        largest = _largest(first) + _largest(second)
        absolute += n * largest * _least(sums) * 2.0**-multiplied.mantissa_bits
    pairs = [
        multiplicand(problem, number, array).astype(np.float64)
        for number, array in enumerate((first, second))
    ]
    for number, array in enumerate((first, second)):
        lost = is_flushed(problem, number, array, types)
        if lost.any():
            sizes = [np.abs(one) for one in pairs]
            sizes[number] = sizes[number] * lost
            absolute = absolute + exact_sums(as_multiplied(problem), *sizes)
    return replace(allowed, absolute=allowed.absolute + absolute)
