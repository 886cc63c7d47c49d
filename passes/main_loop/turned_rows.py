# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `load-to-lds`: rows of LDS whose pieces change places, against bank conflicts.

Lanes read pieces of 16 bytes, eight lanes at a time, of eight rows. Rows of 64 bytes begin in one
of two banks, so that lanes wait for each other. A load cannot lengthen rows. But each lane chooses
what it loads: piece p of row r lies in place p xor ((r / 2) mod 4). In general, with so many pieces
a row, and 128 bytes of all banks:

    place = piece xor ((row / (8 / pieces)) mod pieces)

Lanes write in the order of places, so a lane loads what another one would have: its number is
exchanged where it finds what to load. What reads LDS finds a piece in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.copied_pieces import LOAD_BYTES, Piece
from conv_compiler.passes.main_loop.loop_ops import TRANSPOSED, kind, operation
from conv_compiler.passes.main_loop.row_tiles import constant

# Pieces that all banks hold.
_ALL = 8
_THREAD, _LANE = "gpu.thread_id", "gpu.lane_id"


def turn_reads(loop: ir.Operation) -> None:
    """Have the reads of LDS in a loop find pieces in their places, but for transposed ones.

    Raises UnsupportedStrategy for reads of more than one piece.
    """
    for op in [one.operation for one in loop.regions[0].blocks[0].operations]:
        if kind(op) == "read" and op.name != TRANSPOSED:
            _find(op, *_row(ir.MemRefType(op.operands[0].type)))


def turned_threads(loop: ir.Operation, pieces: Sequence[Piece]) -> dict[ir.Value, ir.Value]:
    """What stands, where threads find what to load, for each value outside the loop that hangs on
    the number of a thread. It is made in front of the loop."""
    counts = {_row(ir.MemRefType(piece.tile.type))[1] for piece in pieces}
    if len(counts) != 1:
        raise UnsupportedStrategy("rows of LDS: of two lengths; use another form")
    with ir.InsertionPoint(loop):
        return _exchanged(loop, pieces, counts.pop())


def _row(tile: ir.MemRefType) -> tuple[int, int]:
    """The elements of a piece, and the pieces of a row.

    Raises UnsupportedStrategy where rows have others than 1, 2, 4 or 8.
    """
    piece = 8 * LOAD_BYTES // int(tile.element_type.width)
    count, rest = divmod(tile.shape[-1], piece)
    if rest or count not in (1, 2, 4, _ALL):
        raise UnsupportedStrategy(f"LDS of type {tile}: its rows cannot turn; use another form")
    return piece, count


def _find(read: ir.Operation, piece: int, count: int) -> None:
    """Have a read find the place of its piece."""
    rank = len(ir.MemRefType(read.operands[0].type).shape)
    shape = ir.VectorType(read.results[0].type).shape
    if shape[-1] > piece or any(size > 1 for size in shape[:-1]):
        raise UnsupportedStrategy("read of LDS: more than a piece; use another instruction")
    row, at = read.operands[rank - 1], read.operands[rank]
    with ir.InsertionPoint(read):
        place = arith.MulIOp(_turn(row, _ALL // count, count), _number(piece)).result
        read.operands[rank] = arith.XOrIOp(at, place).result


def _turn(row: ir.Value, rows: int, count: int) -> ir.Value:
    """(row / rows) mod count."""
    among = arith.DivUIOp(row, _number(rows)).result
    found: ir.Value = arith.RemUIOp(among, _number(count)).result
    return found


def _exchanged(loop: ir.Operation, pieces: Sequence[Piece], count: int) -> dict[ir.Value, ir.Value]:
    """What stands, where threads find what to load, for each value outside the loop that hangs on
    the number of a thread."""
    inside = {one.operation for one in loop.regions[0].blocks[0].operations}
    made: dict[ir.Value, ir.Value] = {}

    def visit(value: ir.Value) -> bool:
        """Whether a value hangs on a thread's number; what stands for it is then made."""
        if value in made:
            return True
        if not isinstance(value.owner, ir.OpView | ir.Operation):
            return False
        op = operation(value.owner)
        if op.name == _LANE:
            raise UnsupportedStrategy("copy to LDS: by the lane's number; use another form")
        if op.name == _THREAD:
            made[value] = arith.XOrIOp(value, _turn(value, _ALL, count)).result
            return True
        if not any([visit(operand) for operand in op.operands]) or op in inside:
            return False
        copy = op.clone()
        for place, operand in enumerate(copy.operands):
            if operand in made:
                copy.operands[place] = made[operand]
        made.update(zip(op.results, copy.results, strict=True))
        return True

    for piece in pieces:
        for value in piece.needs:
            visit(value)
    return made


def _number(value: int) -> ir.Value:
    return constant(ir.IndexType.get(), value)
