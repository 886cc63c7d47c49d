# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wider floats as 8-bit floats, to the nearest even and saturated, and floats of 8 bits or fewer as
f32."""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.problem.dtypes import DTYPES, DType

# Of f32: explicit fraction bits, exponent bias.
FRACTION, BIAS = 23, 127


def row_of(type: ir.Type) -> DType | None:
    """The row of a type, if that is an 8-bit float."""
    row = DTYPES.get(str(type))
    return row if row and row.is_f8 else None


def saturated(x: ir.Value, dtype: DType) -> ir.Value:
    """A scalar of floats as an 8-bit float."""
    x = ops.convert(x, ir.F32Type.get())  # what every target can convert from
    largest = arith.ConstantOp(x.type, ir.FloatAttr.get(x.type, dtype.largest)).result
    least = arith.ConstantOp(x.type, ir.FloatAttr.get(x.type, -dtype.largest)).result
    # Choices keep NaN; minima and maxima may lose it on their way to an instruction.
    above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, largest).result
    below = arith.CmpFOp(arith.CmpFPredicate.OLT, x, least).result
    inside = arith.SelectOp(below, least, x).result
    inside = arith.SelectOp(above, largest, inside).result
    return arith.TruncFOp(ops.element_type(dtype), inside).result


def narrowed(
    value: ir.Value,
    dtype: DType,
    op: Callable[[ir.Value], ir.Value] = lambda x: x,
    role: str = "",
) -> ir.Value:
    """The tensor of floats after an op on f32 as 8-bit floats; the op may have a role."""

    def body(x: ir.Value) -> ir.Value:
        return saturated(op(ops.convert(x, ir.F32Type.get())), dtype)

    return ops.elementwise([value], ops.element_type(dtype), body, role)


def widened(value: ir.Value, dtype: DType) -> ir.Value:
    """A scalar 8-bit float as f32, in integer arithmetic: IREE 3.13's own conversion reads a NaN of
    f8E4M3FN as -480."""
    byte = arith.BitcastOp(ir.IntegerType.get_signless(8), value).result
    return number_of(arith.ExtUIOp(ir.IntegerType.get_signless(32), byte).result, dtype)


def number_of(code: ir.Value, dtype: DType) -> ir.Value:
    """The f32 of a float of 8 bits or fewer, whose code is an i32; no denormals are calculated
    with."""
    f32, bits = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    fraction, bias = dtype.mantissa_bits, dtype.exponent_bias
    size = arith.AndIOp(code, integer(2 ** (dtype.bits - 1) - 1)).result

    exponent = integer((BIAS - bias) << FRACTION)
    shifted = arith.ShLIOp(size, integer(FRACTION - fraction)).result
    normal = arith.AddIOp(shifted, exponent).result
    smallest = arith.ConstantOp(f32, ir.FloatAttr.get(f32, 2.0 ** (1 - bias - fraction))).result
    multiple = arith.MulFOp(arith.UIToFPOp(f32, size).result, smallest).result
    is_normal = _compare("uge", size, 1 << fraction)
    found = arith.SelectOp(is_normal, normal, arith.BitcastOp(bits, multiple).result).result
    top = arith.ShRUIOp(code, integer(dtype.bits - 1)).result
    sign = arith.ShLIOp(top, integer(31)).result
    signed = arith.OrIOp(found, sign).result
    if dtype.infinity_code:  # and NaN above it: the largest exponent, as in f32
        special = arith.OrIOp(arith.OrIOp(shifted, integer(0x7F800000)).result, sign).result
        is_special = _compare("uge", size, dtype.infinity_code)
        signed = arith.SelectOp(is_special, special, signed).result
    elif dtype.nan_code:
        one = code if dtype.fnuz else size
        signed = arith.SelectOp(_compare("eq", one, dtype.nan_code), integer(0x7FC00000), signed)
        signed = signed.result
    return arith.BitcastOp(f32, signed).result


def _compare(how: str, value: ir.Value, number: int) -> ir.Value:
    return arith.CmpIOp(arith.CmpIPredicate[how], value, integer(number)).result


def integer(value: int, bits: int = 32) -> ir.Value:
    """A constant of so many bits."""
    type = ir.IntegerType.get_signless(bits)
    return arith.ConstantOp(type, ir.IntegerAttr.get(type, value)).result
