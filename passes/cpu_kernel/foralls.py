# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over workgroups and threads; each iteration makes a piece of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import scf, tensor

from conv_compiler.ir import ops

# A tensor, and the offsets and sizes of its place in a result.
Piece = tuple[ir.Value, Sequence[ir.Value | int], Sequence[ir.Value | int]]


def _mixed(values: Sequence[ir.Value | int]) -> tuple[list[ir.Value], ir.Attribute]:
    """Operands, and the attribute of static values in which they are left open."""
    open = ir.ShapedType.get_dynamic_size()
    static = [value if isinstance(value, int) else open for value in values]
    dynamic = [value for value in values if not isinstance(value, int)]
    return dynamic, ir.DenseI64ArrayAttr.get(static)


def slice_of(
    value: ir.Value,
    offsets: Sequence[ir.Value | int],
    sizes: Sequence[ir.Value | int],
    shape: Sequence[int] | None = None,
) -> ir.Value:
    """Part of a tensor as a tensor of `shape`, which leaves axes of one element out: all of them
    where none is given.

    IREE would drop these itself by reshapes, and its bufferization would copy some of the parts.
    """
    at, static_at = _mixed(offsets)
    extents, static_extents = _mixed(sizes)
    if shape is None:
        shape = [extent for extent in ir.DenseI64ArrayAttr(static_extents) if extent != 1]
    type = ir.RankedTensorType.get(list(shape), ops.element_of(value))
    ones = ir.DenseI64ArrayAttr.get([1] * len(sizes))
    return tensor.ExtractSliceOp(
        type, value, at, extents, [], static_at, static_extents, ones
    ).result


def forall(
    sizes: Sequence[int],
    out: ir.Value,
    mapping: Sequence[str],
    body: Callable[[list[ir.Value], ir.Value], Piece],
) -> ir.Value:
    """A loop of independent iterations; each puts a piece of the result in its place."""
    rank = len(sizes)
    loop = scf.ForallOp(
        [0] * rank,
        sizes,
        [1] * rank,
        [out],
        mapping=ir.ArrayAttr.get([ir.Attribute.parse(name) for name in mapping]),
    )
    *ids, shared = loop.body.arguments
    with ir.InsertionPoint(loop.body):
        piece, offsets, extents = body(ids, shared)
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.block):
        at, static_at = _mixed(offsets)
        size, static_size = _mixed(extents)
        ones = ir.DenseI64ArrayAttr.get([1] * len(extents))
        tensor.ParallelInsertSliceOp(piece, shared, at, size, [], static_at, static_size, ones)
    result: ir.Value = loop.results[0]
    return result
