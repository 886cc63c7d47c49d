# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Some images of a slice of a larger tensor, by a kernel that reads nothing beside the slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.ir import dispatches, ops


def gathered(
    value: ir.Value, axis: int, own: Sequence[int], start: Any, count: Any, shape: Sequence[Any]
) -> ir.Value:
    """A tensor of `shape` with `count` images along `axis` from `start` on, and zeros elsewhere.

    `own` is the slice's shape, whose images are `value`'s. Only axes of one element lie before.
    """
    index = ir.IndexType.get()

    def number(one: Any) -> ir.Value:
        return one if isinstance(one, ir.Value) else arith.ConstantOp(index, one).result

    element, first, images = ops.element_of(value), number(start), number(count)
    region = dispatches.dispatch_region(ir.RankedTensorType.get(list(shape), element))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        sizes = [number(1)] * axis + [images] + [number(one) for one in own[axis + 1 :]]

        def body(zero: ir.Value) -> ir.Value:
            at = [linalg.IndexOp(one).result for one in range(len(shape))]
            inside = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
            places = []
            for here, size in zip(at, sizes, strict=True):
                is_in = arith.CmpIOp(arith.CmpIPredicate.ult, here, size).result
                inside = arith.AndIOp(inside, is_in).result
                places.append(arith.MinUIOp(here, arith.SubIOp(size, number(1)).result).result)
            places[axis] = arith.AddIOp(places[axis], first).result
            return arith.SelectOp(inside, tensor.ExtractOp(value, places).result, zero).result

        dims = [ir.AffineDimExpr.get(one) for one in range(len(shape))]
        empty = tensor.EmptyOp(list(shape), element).result
        zero = ops.zero(element)
        dispatches.dispatch_return(
            ops.generic([], empty, [dims], len(shape), 0, lambda _: body(zero))
        )
    result: ir.Value = region.results[0]
    return result
