# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wider floats as 8-bit floats: to the nearest even, saturated."""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.problem.dtypes import DTYPES, DType


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
