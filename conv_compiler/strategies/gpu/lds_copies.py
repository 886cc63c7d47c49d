"""How threads bring an operand's tile to LDS: pieces that divide the work, rows without conflicts.

A tile lies in LDS as [gemm_k step][m or n][gemm_k of one instruction]: an LDS row is what one
instruction takes of gemm_k for one m or n.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conv_compiler.targets import Mma

# Loads of single elements a thread may have in flight for one operand; more of them spill.
MOST_SCALAR_LOADS = 16
# One thread's piece of an operand on its way from memory to LDS: at most, as read, as written.
MOST_COPY_BYTES = 64
MEMORY_BYTES = 16
LDS_BYTES = 8
# Bytes by which the pipeline lengthens each LDS row against bank conflicts; where the longer rows
# do not fit, the compiler leaves them out without a word.
LDS_ROW_PADDING = 8
LDS_BANKS, LDS_LANES, DWORD = 32, 64, 4
LINE_BYTES = 128
# Bytes a load of one element brings from memory: a part of a cache line its neighbours may not use.
LEAST_LOAD_BYTES = 16


@lru_cache(maxsize=4096)
def copy_pieces(
    rows: int,
    depth: int,
    threads: int,
    mma_rows: int,
    mma: Mma,
    beside: tuple[int, int],
    item_bytes: int,
    unturned: bool = False,
    halves: bool = True,
) -> tuple[tuple[int, int], ...]:
    """What one thread may copy of an operand tile of `rows` (m or n) by `depth` (gemm_k) elements.

    Every thread gets the same number of pieces (or IREE's software pipelining is lost) inside one
    instruction's operand. First the piece that reads MEMORY_BYTES of what lies `beside` one another
    (along m or n, along gemm_k) and then writes LDS_BYTES of gemm_k side by side, as near as there
    is one; then, where it is another piece, that which keeps the LDS busy for the shortest time;
    where `unturned`, also one that writes each element by itself, so that registers need not be
    turned. `halves` as in `lds_write_cycles`. None where no piece divides the work.
    """
    wide, quick, single = [], [], []
    for elements in (16, 8, 4, 2, 1):
        for along_k in (16, 8, 4, 2, 1):
            if mma.unit(mma_rows) % elements or mma.unit(mma.k) % along_k:
                continue
            if elements * along_k * item_bytes > MOST_COPY_BYTES:
                continue
            if rows * depth % (elements * along_k * threads):
                continue
            vector = vector_of((elements, along_k), beside)
            if rows * depth // (threads * vector) > MOST_SCALAR_LOADS:
                continue
            read = min(vector * item_bytes, MEMORY_BYTES)
            piece = (elements, along_k)
            wide.append(((read, -abs(along_k * item_bytes - LDS_BYTES), elements), piece))
            cycles = sum(lds_write_cycles(piece, mma.unit(mma.k), item_bytes, halves))
            quick.append(((-cycles / along_k, read, elements), piece))
            if unturned and along_k == 1 and beside[1] == 1:
                single.append(((read, -elements), piece))
    return tuple(dict.fromkeys(max(order)[1] for order in (wide, quick, single) if order))


def vector_of(piece: tuple[int, int], beside: tuple[int, int]) -> int:
    """Elements of a piece that one load brings: along the axis on which so many lie `beside` one
    another in memory, where it takes a whole number of them."""
    axis = int(beside[1] > 1)
    return piece[axis] if beside[axis] % piece[axis] == 0 else 1


@lru_cache(maxsize=256)
def lds_write_cycles(
    piece: tuple[int, int], row: int, item_bytes: int, halves: bool = True
) -> tuple[float, float]:
    """(without bank conflicts, lost to them): cycles in which 64 lanes write one `along_k` each, in
    the mean of a piece's rows.

    Lanes lie side by side along an LDS row of `row` elements, then along m or n. Banks as in
    docs/vgpu.md: 32 of a dword, and as many lanes at a time as these serve. What is not known to
    begin at a multiple of its own 16 bytes is written as two `halves`, one after the other.
    """
    elements, along_k = piece
    pitch, width = row * item_bytes + LDS_ROW_PADDING, along_k * item_bytes
    free = LDS_LANES // _lanes_at_once(width)
    whole = _write_cycles(piece, row, pitch, width, width)
    if width <= LDS_BYTES or not halves:
        return free, whole - free
    aligned = [elements * pitch % width == 0 == at * pitch % width for at in range(elements)]
    split = 2 * _write_cycles(piece, row, pitch, width, width // 2)
    return free, sum(whole if one else split for one in aligned) / elements - free


def _lanes_at_once(width: int) -> int:
    return max(1, LDS_BANKS * DWORD // max(width, DWORD))


def _write_cycles(piece: tuple[int, int], row: int, pitch: int, step: int, width: int) -> int:
    """Cycles in which lanes `step` bytes apart along rows of `pitch` bytes write `width` each."""
    elements, along_k = piece
    beside, in_row = _lanes_at_once(width), row // along_k
    cycles = 0
    for first in range(0, LDS_LANES, beside):
        dwords = set()
        for lane in range(first, first + beside):
            at = lane // in_row * elements * pitch + lane % in_row * step
            dwords |= set(range(at // DWORD, -(-(at + width) // DWORD)))
        cycles += max(Counter(dword % LDS_BANKS for dword in dwords).values())
    return cycles


@lru_cache(maxsize=4096)
def load_lines(
    tile: tuple[int, int],
    piece: tuple[int, int],
    run: tuple[int, int],
    pitch: int,
    lanes: int,
    lds_row: int,
    size: int,
) -> float:
    """Cache lines that a wave's load of a `tile` touches, in the mean.

    Its `lanes` have a `piece` (m or n, gemm_k) each, side by side along an LDS row of `lds_row` and
    then along m or n. Of one axis `run` elements of `size` bytes lie side by side in memory, of the
    other 1; the next such run starts `pitch` elements further or anywhere. Lanes of one run share
    lines; another load that reads the rest of a line touches it again.
    """
    along_k = min(lanes, max(1, lds_row // piece[1]))
    axis = int(run[1] > 1)
    beside = along_k if axis else min(lanes // along_k, max(1, tile[0] // piece[0]))
    length = beside * piece[axis]
    cut = math.gcd(length, run[axis])
    runs = 1 + (length - cut) / run[axis]  # a lane's neighbours may be in the next one
    start = math.gcd(pitch * size, cut * size, LINE_BYTES)
    lines = length * size / LINE_BYTES + runs * (1 - start / LINE_BYTES)
    return lanes // beside * lines


def lds_bytes(mma: Mma, tile: tuple[int, int, int], size: int) -> int:
    """LDS of a workgroup for elements of `size` bytes, the padding of rows included."""
    row_bytes = mma.unit(mma.k) * size  # of gemm_k side by side
    rows = (tile[0] + tile[1]) * tile[2] * size // row_bytes
    return rows * (row_bytes + LDS_ROW_PADDING)


@dataclass(frozen=True, kw_only=True)
class Copy:
    """How a thread brings its share of one operand's tile to LDS, a trip."""

    loads: int
    rows: int  # of gemm_k, or of m or n where it is read along gemm_k
    dwords: float  # registers that hold the share
    packed: float  # of which their elements come from different loads
    line_bytes: float  # of the cache lines it reads
    writes: int
    write_bytes: int  # a write's width, as LDS has it
    write_conflicts: float  # cycles lost


@lru_cache(maxsize=4096)
def copy_of(
    tile: tuple[int, int],
    piece: tuple[int, int],
    beside: tuple[int, int],
    run: tuple[int, int],
    pitch: int,
    threads: tuple[int, int],
    lds_row: int,
    size: int,
    halves: bool = True,
) -> Copy:
    """A thread's share of a `tile` (m or n, gemm_k) in pieces of the same axes, of elements of
    `size` bytes; so many lie `beside` one another in memory, in a `run` with those of other
    taps, a `pitch` from the next run, and `lds_row` of gemm_k in LDS. `threads` are those of a
    workgroup, and of a wave; `halves` as in `lds_write_cycles`."""
    elements = tile[0] * tile[1] // threads[0]
    loads = elements // vector_of(piece, beside)
    axis = int(beside[1] > 1)
    if beside[axis] > 1:
        lines = loads / threads[1] * load_lines(tile, piece, run, pitch, threads[1], lds_row, size)
    else:
        lines = loads * LEAST_LOAD_BYTES / LINE_BYTES
    writes = max(1, elements // piece[1])
    dwords = elements * size / DWORD
    return Copy(
        loads=loads,
        rows=max(1, elements // piece[axis]),
        dwords=dwords,
        packed=0.0 if axis else dwords,
        line_bytes=lines * LINE_BYTES,
        writes=writes,
        write_bytes=width_class(piece[1] * size),
        write_conflicts=writes * lds_write_cycles(piece, lds_row, size, halves)[1] / LDS_LANES,
    )


def width_class(bytes_: float) -> int:
    return next((size for size in (4, 8, 16) if bytes_ <= size), 16)
