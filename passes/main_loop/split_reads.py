# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of LDS a fragment at a time, in a kernel's main loop."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith, memref, vector

from conv_compiler.passes.main_loop.loop_ops import LDS, memory, operation


def split_reads(loop: ir.Operation) -> None:
    """Have a read of LDS for each fragment, in place of one of all that are extracted from it."""
    body = [one.operation for one in loop.regions[0].blocks[0].operations]
    for op in [one for one in body if _is_whole_read(one)]:
        uses = [operation(use.owner) for use in op.results[0].uses]
        if any(use.name != "vector.extract" for use in uses):
            continue
        pieces: dict[tuple[int, ...], ir.Value] = {}
        for use in sorted(uses, key=_position):
            at = _position(use)
            if at not in pieces:
                with ir.InsertionPoint(op):
                    pieces[at] = _piece(op, at, use.results[0].type)
            use.results[0].replace_all_uses_with(pieces[at])
            use.erase()
        op.erase()


def _is_whole_read(op: ir.Operation) -> bool:
    """Whether an operation reads several fragments of LDS that lie in it as in its result."""
    if op.name != "vector.transfer_read" or memory(op) != LDS:
        return False
    rank = len(ir.MemRefType(op.operands[0].type).shape)
    shape = ir.VectorType(op.results[0].type).shape
    order = ir.AffineMap.get_minor_identity(rank, len(shape))
    inside = [ir.BoolAttr(one).value for one in ir.ArrayAttr(op.attributes["in_bounds"])]
    return (
        len(shape) > 2
        and op.attributes["permutation_map"] == ir.AffineMapAttr.get(order)
        and all(inside)
    )


def _piece(op: ir.Operation, at: tuple[int, ...], kind: ir.Type) -> ir.Value:
    """A read of what is extracted at a position of what another operation reads: a vector, or one
    element."""
    rank = len(ir.MemRefType(op.operands[0].type).shape)
    source, *indices = list(op.operands)[: 1 + rank]
    first = rank - len(ir.VectorType(op.results[0].type).shape)
    for axis, offset in enumerate(at, first):
        if offset:
            step = arith.ConstantOp(ir.IndexType.get(), offset).result
            indices[axis] = arith.AddIOp(indices[axis], step).result
    if not isinstance(kind, ir.VectorType):
        return memref.LoadOp(source, indices).result
    shape = ir.VectorType(kind).shape
    order = ir.AffineMap.get_minor_identity(rank, len(shape))
    return vector.TransferReadOp(
        kind,
        source,
        indices,
        ir.AffineMapAttr.get(order),
        op.operands[1 + rank],
        [True] * len(shape),
    ).result


def _position(extract: ir.Operation) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(extract.attributes["static_position"]))
