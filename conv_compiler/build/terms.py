# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers as sums of narrower ones: the terms of all products, stacked along the batch.

Let a = high + low, and b likewise. Then a sum over images of a * b is a sum over three times as
many images: of high * high, low * high and high * low. That is one contraction of the narrower
type. The parts are stacked here for it, by a kernel for each operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.ir import dispatches, ops
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.layouts import axis_of

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.dtypes import Terms


def stacked(
    problem: ConvProblem, terms: Terms, image: ir.Value, gradient: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The operands of a weight gradient, in its grouped axes, with all terms along the batch."""
    row = problem.layout_row.grouped
    of_gradient, of_image = zip(*terms.parts, strict=True)
    type = ops.element_type(DTYPES[terms.dtype])
    return (
        _parts(image, axis_of(row.input, "N", problem.ndim), of_image, type),
        _parts(gradient, axis_of(row.output, "N", problem.ndim), of_gradient, type),
    )


def _high_half(x: ir.Value) -> ir.Value:
    """An f32 number to the nearest even of bf16, as f32: its upper half.

    By bits: of a conversion and one back IREE 3.13 leaves nothing on the CPU.
    """
    i32 = ir.IntegerType.get_signless(32)

    def number(value: int) -> ir.Value:
        return arith.ConstantOp(i32, ir.IntegerAttr.get(i32, value)).result

    bits = arith.BitcastOp(i32, x).result
    is_odd = arith.AndIOp(arith.ShRUIOp(bits, number(16)).result, number(1)).result
    half = arith.AddIOp(is_odd, number(0x7FFF)).result
    nearest = arith.AndIOp(arith.AddIOp(bits, half).result, number(-0x10000)).result
    return arith.BitcastOp(x.type, nearest).result


def _parts(value: ir.Value, axis: int, parts: Sequence[str], type: ir.Type) -> ir.Value:
    """The tensor once for each part, one behind the other along an axis."""
    index = ir.IndexType.get()
    shape = ops.shape_of(value)
    longer = [*shape[:axis], len(parts), *shape[axis:]]
    dims = [ir.AffineDimExpr.get(i) for i in range(len(longer))]

    def body(x: ir.Value, _: ir.Value) -> ir.Value:
        high = arith.TruncFOp(type, x).result
        low = arith.TruncFOp(type, arith.SubFOp(x, _high_half(x)).result).result
        # Of the parts, those that are low ones.
        part = linalg.IndexOp(axis).result
        found = high
        for number, name in enumerate(parts):
            if name == "low":
                here = arith.CmpIOp(
                    arith.CmpIPredicate.eq, part, arith.ConstantOp(index, number).result
                ).result
                found = arith.SelectOp(here, low, found).result
        return found

    region = dispatches.dispatch_region(ir.RankedTensorType.get(longer, type))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        empty = tensor.EmptyOp(longer, type).result
        plain = [*dims[:axis], *dims[axis + 1 :]]
        dispatches.dispatch_return(ops.generic([value], empty, [plain, dims], len(longer), 0, body))
    return ops.merge_axes(region.results[0], axis, 2)
