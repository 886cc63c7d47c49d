# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How threads bring an operand's tile to LDS: pieces that divide the work, rows without conflicts.

A tile lies in LDS as [gemm_k step][m or n][gemm_k of one instruction]: an LDS row is what one
instruction takes of gemm_k for one m or n. Whole rows lie as [m or n][gemm_k of the tile]. A pair
is (along m or n, along gemm_k).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.cost_constants import COPIES
from conv_compiler.strategies.gpu.lds_banks import (
    DWORD,
    LDS_LANES,
    LDS_ROW_PADDING,
    WHOLE_ROW_PADDING,
    Item,
    LdsRow,
    Pair,
    lds_write_cycles,
    row_write_cycles,
    row_writes,
)

if TYPE_CHECKING:
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma

# What a lane has of one transposed read.
TRANSPOSED_READ_BYTES = 8
# The widest read.
WIDEST_READ_BYTES = 16
# A cache line of every AMD chip in the table.
LINE_BYTES = 128
# The sides of a piece that are tried, in elements: powers of two up to the widest.
PIECE_SIDES = (16, 8, 4, 2, 1)


class Share(NamedTuple):
    """What is shared out: a `tile` in elements among `threads`, in units of one instruction.

    `adjacent` elements lie side by side in memory, along either axis.
    """

    tile: Pair
    unit: Pair
    threads: int
    adjacent: Pair


class Memory(NamedTuple):
    """How an operand lies in memory, in elements.

    `adjacent` as in `Share`; the same in a `run`, with what other taps add to it. The next run
    starts `pitch` further, or anywhere.
    """

    adjacent: Pair
    run: Pair
    pitch: int


@lru_cache(maxsize=4096)
def copy_pieces(share: Share, item: Item, *, single: bool = False) -> tuple[Pair, ...]:
    """Return the pieces (elements along m or n, along gemm_k) that a thread may copy.

    Every thread gets the same number of pieces (or IREE's software pipelining is lost), each inside
    one instruction's operand. There are up to three, each once:

    1. the piece that reads whole vectors of what is adjacent, then writes whole pieces of gemm_k;
    2. the one that keeps the LDS busy for the shortest time;
    3. with `single`, one that writes each element by itself, so that registers need no transposing.

    Empty where no piece divides the work.
    """
    fitting = [
        (elements, along_k)
        for elements in PIECE_SIDES
        for along_k in PIECE_SIDES
        if _fits((elements, along_k), share, item)
    ]
    alone = [p for p in fitting if single and p[1] == 1 and share.adjacent[1] == 1]
    row = LdsRow.of(share.unit[1], item, share.tile, share.adjacent)

    def reads(piece: Pair) -> int:
        return min(vector_of(piece, share.adjacent) * item.bytes, COPIES.read_bytes)

    def wide(piece: Pair) -> tuple[float, ...]:
        return reads(piece), -abs(piece[1] * item.bytes - COPIES.write_bytes), piece[0], piece[1]

    def quick(piece: Pair) -> tuple[float, ...]:
        # Of whole rows a thread finds the fewer addresses, the more it copies of each.
        size = piece[::-1] if item.whole_rows else piece
        return -sum(lds_write_cycles(piece, row)) / piece[1], reads(piece), *size

    def small(piece: Pair) -> tuple[float, ...]:
        return reads(piece), -piece[0], *piece

    choices = ((wide, fitting), (quick, fitting), (small, alone))
    return tuple(dict.fromkeys(max(pieces, key=order) for order, pieces in choices if pieces))


def _fits(piece: Pair, share: Share, item: Item) -> bool:
    """Whether pieces divide the instructions' operands and the threads' work, and are not too
    many or too large."""
    work, size = math.prod(share.tile), math.prod(piece)
    loads = work // (share.threads * vector_of(piece, share.adjacent))
    return (
        share.unit[0] % piece[0] == 0 == share.unit[1] % piece[1]
        and size * item.bytes <= COPIES.most_piece_bytes
        and work % (size * share.threads) == 0
        and loads <= COPIES.most_scalar_loads
    )


def vector_of(piece: Pair, adjacent: Pair) -> int:
    """Elements of a piece that one load brings: along the axis on which `adjacent` elements lie
    side by side in memory, where the piece divides them."""
    axis = int(adjacent[1] > 1)
    return piece[axis] if adjacent[axis] % piece[axis] == 0 else 1


@lru_cache(maxsize=4096)
def load_lines(tile: Pair, piece: Pair, memory: Memory, lanes: int, row: LdsRow) -> float:
    """Cache lines that a wave's load of a `tile` touches, in the mean.

    Each of its `lanes` has a piece; they lie side by side along an LDS row, then along k steps,
    then along m or n.
    Lanes of one run share lines; another load that reads the rest of a line touches it again.
    """
    run, size = memory.run, row.item.bytes
    along_k = min(lanes, max(1, row.steps * row.elements // piece[1]))
    axis = int(run[1] > 1)
    together = along_k if axis else min(lanes // along_k, max(1, tile[0] // piece[0]))
    length = together * piece[axis]
    cut = math.gcd(length, run[axis])
    runs = 1 + (length - cut) / run[axis]  # a lane's neighbours may be in the next one
    start = math.gcd(memory.pitch * size, cut * size, LINE_BYTES)
    lines = length * size / LINE_BYTES + runs * (1 - start / LINE_BYTES)
    return lanes // together * lines


def tile_line_bytes(tile: Pair, adjacent: Pair, size: int, line: int, pitch: int = 0) -> int:
    """Bytes of the lines, of `line` bytes, of a `tile` of elements of `size` bytes, each line
    once.

    Without a `pitch` rows begin with a line. Rows that lie `pitch` elements apart may begin within
    lines, and the result is the mean over all places that are possible.
    """
    axis = int(adjacent[1] > 1)
    length = tile[axis] * size
    start = math.gcd(pitch * size, length, line) if pitch else 0
    row = length + line - start if start else -(-length // line) * line
    return tile[1 - axis] * row


def transposed_padding(row_bytes: int) -> int:
    """Bytes by which a row of this length is lengthened where lanes read transposed.

    Sixteen lanes read 32 bytes each of four rows, which fill the banks where rows start 32 bytes
    apart among them, or 96.
    """
    return 32 if row_bytes % 64 == 0 else 0


def lds_bytes(mma: Mma, tile: tuple[int, int, int], size: int) -> int:
    """LDS of a workgroup for elements of `size` bytes, the padding of rows included."""
    row_bytes = mma.unit(mma.k) * size  # of gemm_k side by side
    rows = (tile[0] + tile[1]) * tile[2] * size // row_bytes
    return rows * (row_bytes + LDS_ROW_PADDING)


def tiling_lds_bytes(mma: Mma, tiling: GpuTiling, item: Item) -> int:
    """`lds_bytes` of a tiling. Loads that write to LDS need rows without padding, in buffers."""
    m, n, k = tiling.workgroup
    if tiling.loads_to_lds:
        return tiling.stages * (m + n) * k * item.bytes
    if item.whole_rows and k > mma.unit(mma.k):
        return (m + n) * (k * item.bytes + WHOLE_ROW_PADDING)
    return lds_bytes(mma, tiling.workgroup, item.bytes)


class Copy(NamedTuple):
    """How a thread brings its share of one operand's tile to LDS, in one iteration.

    `line_bytes` are those of the cache lines that it reads, each line once. In `again_bytes` each
    load reads its lines anew. One load of a wave touches `spread_bytes` of lines for each lane.
    """

    loads: int
    rows: int  # of gemm_k, or of m or n where it is read along gemm_k
    dwords: float  # registers that hold the share
    packed: float  # of which their elements come from different loads
    line_bytes: float
    again_bytes: float
    spread_bytes: float
    writes: int
    write_bytes: int  # a write's width, as LDS has it
    write_conflicts: float  # cycles lost


@lru_cache(maxsize=4096)
def copy_of(tile: Pair, piece: Pair, memory: Memory, threads: Pair, row: LdsRow) -> Copy:
    """A thread's share of a `tile` in pieces; `threads` are those of a workgroup, and of a wave."""
    elements = tile[0] * tile[1] // threads[0]
    loads = elements // vector_of(piece, memory.adjacent)
    axis = int(memory.adjacent[1] > 1)
    if memory.adjacent[axis] > 1:
        lines = loads / threads[1] * load_lines(tile, piece, memory, threads[1], row)
    else:
        lines = loads * COPIES.least_load_bytes / LINE_BYTES
    rows = max(1, elements // piece[1])
    dwords = elements * row.item.bytes / DWORD
    return Copy(
        loads=loads,
        rows=max(1, elements // piece[axis]),
        dwords=dwords,
        packed=0.0 if axis else dwords,
        line_bytes=lines * LINE_BYTES,
        again_bytes=lines * LINE_BYTES,
        spread_bytes=lines * LINE_BYTES / max(1, loads),
        writes=rows * row_writes(piece[1], row.item),
        write_bytes=width_class(piece[1] * row.item.bytes),
        write_conflicts=rows * row_write_cycles(piece, row).conflicts / LDS_LANES,
    )


def width_class(bytes_: float) -> int:
    """The width by which LDS accesses of so many bytes a lane are counted."""
    return next((size for size in (4, 8, 16) if bytes_ <= size), 16)
