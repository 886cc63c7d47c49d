# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the partial sums of an implicit GEMM to the weight: their sum, axis order and epilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction

# Where in P[s, ...] the element of a weight lies, from the weight's loops by name.
Place = Callable[[Contraction, Mapping[str, ir.Value]], list[ir.Value]]


def find_epilogue(op: ir.Operation) -> ir.Operation | None:
    """The elementwise op that alone uses the contraction's result, if it is tagged as such."""
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


def reduce_parts(
    conv: Contraction, partials: ir.Value, split_k: int, axes: tuple[str, ...] = ()
) -> ir.Value:
    """The sum of P[s, axes...] over s in rising order, in the weight's axis order.

    `axes` are loops of the weight by name, (g, k, taps..., c) where left out.
    """
    if split_k == 1:
        partials = ops.merge_axes(partials, 0, 2)
    rank = len(conv.weight_order)
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + (split_k > 1))]
    read = [dims[conv.weight_order.index(name)] for name in axes or conv.weight_loops]
    return ops.generic(
        [partials],
        ops.filled(ops.shape_of(conv.op.results[0]), conv.accumulator),
        [[dims[-1], *read] if split_k > 1 else read, dims[:rank]],
        len(dims),
        int(split_k > 1),
        lambda part, total: ops.add(total, part) if split_k > 1 else part,
        {ROLE: ir.StringAttr.get("reduction")},
    )


def reduce_extracted(
    conv: Contraction,
    partials: ir.Value,
    place: Place,
) -> ir.Value:
    """The sum over s in rising order of P[s, ...] at the `place` of each weight's loops.

    An index that falls where a loop rises, or depends on a loop twice, is no affine map that IREE
    tiles (it takes a tile's slice to begin at the tile's first index), so the elements are
    extracted; from the whole of P, padding included, for IREE 3.13 gathers from a slice as if it
    were contiguous.
    """
    order = conv.weight_order
    rank, parts = len(order), ops.shape_of(partials)[0]
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]

    def body(_: ir.Value, total: ir.Value) -> ir.Value:
        loops = {name: linalg.IndexOp(axis).result for axis, name in enumerate(order)}
        at = [linalg.IndexOp(rank).result, *place(conv, loops)]
        return ops.add(total, tensor.ExtractOp(partials, at).result)

    return ops.generic(
        [tensor.EmptyOp([parts], conv.accumulator).result],  # says how many parts there are
        ops.filled(ops.shape_of(conv.op.results[0]), conv.accumulator),
        [dims[rank:], dims[:rank]],
        rank + 1,
        1,
        body,
        {ROLE: ir.StringAttr.get("reduction")},
    )


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _linear(indices: Iterable[tuple[ir.Value, int]]) -> ir.Value:
    """The linear index of some (index, extent), outermost first."""
    at = _constant(0)
    for index, extent in indices:
        at = arith.AddIOp(arith.MulIOp(at, _constant(extent)).result, index).result
    return at


def mirrored(conv: Contraction, loops: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Where a weight lies in P[g, (taps..., k), c], taps reversed."""
    taps = [
        (arith.SubIOp(_constant(extent - 1), loops[name]).result, extent)
        for name, extent in zip(conv.weight_loops[2:-1], conv.taps, strict=True)
    ]
    return [loops["g"], _linear([*taps, (loops["k"], conv.gemm_m)]), loops["c"]]


def diagonal(groups: int, taps_outside: bool) -> Place:
    """Where a weight lies in P[merged g, (g, k), (taps...), (g, c)], taps and channels on one axis
    unless `taps_outside`."""

    def place(conv: Contraction, loops: Mapping[str, ir.Value]) -> list[ir.Value]:
        merged = _constant(groups)
        block = (arith.RemUIOp(loops["g"], merged).result, groups)
        taps = [
            (loops[name], extent)
            for name, extent in zip(conv.weight_loops[2:-1], conv.taps, strict=True)
        ]
        channel = [block, (loops["c"], conv.channels)]
        columns = [taps, channel] if taps_outside else [[*taps, *channel]]
        rows = [block, (loops["k"], conv.gemm_m)]
        return [arith.DivUIOp(loops["g"], merged).result, *map(_linear, (rows, *columns))]

    return place
