# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars of a kernel that is being built, with the operators formulas are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, math

from conv_compiler.ir import ops
from conv_compiler.ir.f8 import row_of, saturated

# Where the continued fraction of tanh is used, and its last number: it is then exact to f64.
_NEAR_0, _LAST_ODD = 0.625, 21
Binary = Callable[[ir.Value, ir.Value], ir.OpView]


@dataclass(frozen=True)
class Scalar:
    """A value of f32 or f64; each operator adds an op at the insertion point in force."""

    value: ir.Value

    def _constant(self, number: float) -> ir.Value:
        type = self.value.type
        return arith.ConstantOp(type, ir.FloatAttr.get(type, number)).result

    def _with(self, op: Binary, other: Scalar | float, swapped: bool = False) -> Scalar:
        second = other.value if isinstance(other, Scalar) else self._constant(other)
        first = self.value
        return Scalar(op(second, first).result if swapped else op(first, second).result)

    def __add__(self, other: Scalar | float) -> Scalar:
        return self._with(arith.AddFOp, other)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self._with(arith.SubFOp, other)

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self._with(arith.MulFOp, other)

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self._with(arith.DivFOp, other)

    def __radd__(self, other: float) -> Scalar:
        return self._with(arith.AddFOp, other, swapped=True)

    def __rsub__(self, other: float) -> Scalar:
        return self._with(arith.SubFOp, other, swapped=True)

    def __rmul__(self, other: float) -> Scalar:
        return self._with(arith.MulFOp, other, swapped=True)

    def __rtruediv__(self, other: float) -> Scalar:
        return self._with(arith.DivFOp, other, swapped=True)

    def __neg__(self) -> Scalar:
        return Scalar(arith.NegFOp(self.value).result)

    def maximum(self, other: float) -> Scalar:
        """The larger of the value and a number; NaN where the value is.

        By comparison: of `arith.maximumf` IREE 3.13 makes AMD's maximum, which is the number then.
        """
        least = self._constant(other)
        larger = arith.CmpFOp(arith.CmpFPredicate.UGT, self.value, least).result
        return Scalar(arith.SelectOp(larger, self.value, least).result)

    def tanh(self) -> Scalar:
        """The hyperbolic tangent."""
        if isinstance(self.value.type, ir.F64Type):
            return self._tanh_of_f64()
        return Scalar(math.TanhOp(self.value).result)

    def _tanh_of_f64(self) -> Scalar:
        """For f64, of which IREE 3.13 has no code for `math.tanh`.

        Near 0 it is Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))). Elsewhere
        no digits cancel in (1 - e) / (1 + e) with e = exp(-2 |x|).
        """
        square, fraction = self * self, self * 0.0 + _LAST_ODD
        for odd in range(_LAST_ODD - 2, 0, -2):
            fraction = float(odd) + square / fraction
        size = Scalar(math.AbsFOp(self.value).result)
        decayed = (size * -2.0).exp()
        far = (1.0 - decayed) / (1.0 + decayed)
        signed = math.CopySignOp(far.value, self.value).result
        near = arith.CmpFOp(arith.CmpFPredicate.OLT, size.value, self._constant(_NEAR_0)).result
        return Scalar(arith.SelectOp(near, (self / fraction).value, signed).result)

    def exp(self) -> Scalar:
        """e to the value."""
        return Scalar(math.ExpOp(self.value).result)


def widened(value: ir.Value, to: ir.Type) -> Scalar:
    """A value of any float or integer type as f32 or f64: exact, but for integers over 2^24."""
    if isinstance(value.type, ir.IntegerType):
        return Scalar(arith.SIToFPOp(to, value).result)
    return Scalar(ops.convert(value, to))


def rounded(scalar: Scalar, to: ir.Type) -> ir.Value:
    """A value of another type, to the nearest even; integers and 8-bit floats saturate."""
    if row := row_of(to):
        return saturated(scalar.value, row)
    if not isinstance(to, ir.IntegerType):
        return ops.convert(scalar.value, to)
    top = 2.0 ** (ir.IntegerType(to).width - 1)
    whole = Scalar(math.RoundEvenOp(scalar.value).result).maximum(-top)
    limit = whole._constant(top)
    above = arith.CmpFOp(arith.CmpFPredicate.OGE, whole.value, limit).result
    largest = arith.ConstantOp(to, ir.IntegerAttr.get(to, int(top) - 1)).result
    inside = arith.SelectOp(above, whole._constant(0.0), whole.value).result
    return arith.SelectOp(above, largest, arith.FPToSIOp(to, inside).result).result
