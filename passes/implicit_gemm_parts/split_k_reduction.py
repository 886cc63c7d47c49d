# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of the parts of split-K in rising order, and the epilogue that runs on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE


def find_epilogue(op: ir.Operation) -> ir.Operation | None:
    """The elementwise op that alone uses an op's result, if it is tagged as such."""
    users = [use.owner for use in op.results[0].uses]
    if len(users) != 1 or ROLE not in users[0].operation.attributes:
        return None
    user = users[0].operation
    return user if ir.StringAttr(user.attributes[ROLE]).value == "epilogue" else None


def apply_epilogue(epilogue: ir.Operation, weight: ir.Value) -> ir.Value:
    """A copy of the epilogue on another value, right behind it."""
    end = epilogue.clone()
    type = ir.RankedTensorType(end.results[0].type)
    empty = tensor.EmptyOp(type.shape, type.element_type).result
    end.operands[0] = weight
    end.operands[len(end.operands) - 1] = empty
    end.move_after(empty.owner)
    result: ir.Value = end.results[0]
    return result


def sum_parts(partials: ir.Value) -> ir.Value:
    """The sum over the outermost axis, in its order."""
    shape = ops.shape_of(partials)
    dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
    return ops.generic(
        [partials],
        ops.filled(shape[1:], ops.element_of(partials)),
        [[dims[-1], *dims[:-1]], dims[:-1]],
        len(shape),
        1,
        lambda part, total: ops.add(total, part),
        {ROLE: ir.StringAttr.get("reduction")},
    )


def reduce_parts(partials: ir.Value, read: Sequence[int], shape: Sequence[int]) -> ir.Value:
    """The weight of `shape`: the sum of P[s, ...] over s in rising order.

    Axis i of P behind s is axis `read[i]` of the weight. A single part is transposed only.
    """
    rank, several = len(shape), ops.shape_of(partials)[0] > 1
    if not several:
        partials = ops.merge_axes(partials, 0, 2)
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + several)]
    axes = [dims[axis] for axis in read]
    return ops.generic(
        [partials],
        ops.filled(shape, ops.element_of(partials)),
        [[dims[-1], *axes] if several else axes, dims[:rank]],
        len(dims),
        int(several),
        lambda part, total: ops.add(total, part) if several else part,
        {ROLE: ir.StringAttr.get("reduction")},
    )


def reduce_extracted(
    partials: ir.Value,
    place: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
    shape: Sequence[int],
) -> ir.Value:
    """The weight of `shape`: the sum over s in rising order of P[s, ...] at the `place` of each
    weight's indices."""
    rank, type = len(shape), ops.element_of(partials)
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]

    def body(_: ir.Value, total: ir.Value) -> ir.Value:
        *loops, part = (linalg.IndexOp(axis).result for axis in range(rank + 1))
        return ops.add(total, tensor.ExtractOp(partials, [part, *place(loops)]).result)

    return ops.generic(
        [tensor.EmptyOp(ops.shape_of(partials)[:1], type).result],  # says how many parts there are
        ops.filled(shape, type),
        [dims[rank:], dims[:rank]],
        rank + 1,
        1,
        body,
        {ROLE: ir.StringAttr.get("reduction")},
    )
