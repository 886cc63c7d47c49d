"""Reads of LDS a fragment at a time, in a kernel's main loop."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.passes.loop_ops import LDS, memory, operation


def split_reads(loop: ir.Operation) -> None:
    """Have a read of LDS for each fragment, in place of one of all that are extracted from it."""
    body = [one.operation for one in loop.regions[0].blocks[0].operations]
    whole_reads = [op for op in body if op.name == "vector.transfer_read" and memory(op) == LDS]
    for op in whole_reads:
        whole = ir.VectorType(op.results[0].type).shape
        uses = [operation(use.owner) for use in op.results[0].uses]
        if len(whole) < 3 or any(use.name != "vector.extract" for use in uses):
            continue
        rank = len(ir.MemRefType(op.operands[0].type).shape)
        source, *indices = list(op.operands)[: 1 + rank]
        pieces: dict[tuple[int, ...], ir.Value] = {}
        for use in sorted(uses, key=_position):
            at = _position(use)
            if at not in pieces:
                kind = ir.VectorType(use.results[0].type)
                order = ir.AffineMap.get_minor_identity(rank, len(kind.shape))
                with ir.InsertionPoint(op):
                    moved = list(indices)
                    for axis, offset in enumerate(at, rank - len(whole)):
                        if offset:
                            step = arith.ConstantOp(ir.IndexType.get(), offset).result
                            moved[axis] = arith.AddIOp(moved[axis], step).result
                    pieces[at] = vector.TransferReadOp(
                        kind,
                        source,
                        moved,
                        ir.AffineMapAttr.get(order),
                        op.operands[1 + rank],
                        [True] * len(kind.shape),
                    ).result
            use.results[0].replace_all_uses_with(pieces[at])
            use.erase()
        op.erase()


def _position(extract: ir.Operation) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(extract.attributes["static_position"]))
