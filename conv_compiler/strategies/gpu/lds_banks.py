# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long lanes take to write rows of an operand to LDS: banks, halves and several writes.

A pair is (along m or n, along gemm_k), as in `lds_copies.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from conv_compiler.strategies.gpu.cost_constants import COPIES

Pair: TypeAlias = tuple[int, int]

# Bytes by which the pipeline lengthens each LDS row against bank conflicts; where the longer rows
# do not fit, the compiler leaves them out without a word.
LDS_ROW_PADDING = 8
# The same where the k steps of a row lie side by side: what a lane reads at a time.
WHOLE_ROW_PADDING = 16
# The ISA's: banks of a dword, and the lanes of a wave-instruction that writes (docs/vgpu.md).
LDS_BANKS, LDS_LANES, DWORD = 32, 64, 4
# The widest write.
WIDEST_WRITE_BYTES = 16
# More than a tile's k step has of LDS, and a multiple of all banks.
LDS_STEP_BYTES = 1 << 20


class Item(NamedTuple):
    """Elements of `bytes` each.

    `halves` tells whether LDS writes of 16 bytes count as the halves that they may be, `several`
    whether what is wider counts as several writes. With `whole_rows` the k steps of a row lie side
    by side (`passes/pad_k_steps.py`).
    """

    bytes: int
    halves: bool = True
    several: bool = False
    whole_rows: bool = False


class LdsRow(NamedTuple):
    """A row of LDS: `elements` of gemm_k side by side.

    Adjacent lanes go on along so many k `steps` before they go to the next row: all of a tile where
    the operand is contiguous along gemm_k, else one. A row is `padding` bytes longer than that,
    and whole rows once for all their steps.
    """

    elements: int
    item: Item
    steps: int = 1
    padding: int = LDS_ROW_PADDING

    @classmethod
    def of(cls, elements: int, item: Item, tile: Pair, adjacent: Pair) -> LdsRow:
        """The row of a `tile` of which `adjacent` elements lie side by side in memory."""
        steps = tile[1] // elements if adjacent[1] > 1 else 1
        is_whole = item.whole_rows and steps > 1
        return cls(elements, item, steps, WHOLE_ROW_PADDING if is_whole else LDS_ROW_PADDING)

    @property
    def pitch(self) -> int:
        """Bytes from a row to the next one."""
        in_row = self.steps if self.item.whole_rows else 1
        return in_row * self.elements * self.item.bytes + self.padding

    @property
    def step_bytes(self) -> int:
        """Bytes from a k step to the next one, as far as banks are concerned.

        A step that is not of a whole row starts a row's bytes further among them
        (`passes/pad_k_steps.py`).
        """
        apart = 0 if self.item.whole_rows else LDS_STEP_BYTES
        return apart + self.elements * self.item.bytes


class WriteCycles(NamedTuple):
    """Cycles in which 64 lanes write: without bank conflicts, and lost to them."""

    free: float
    conflicts: float


@lru_cache(maxsize=256)
def lds_write_cycles(piece: Pair, row: LdsRow) -> WriteCycles:
    """Cycles in which 64 lanes write one `along_k` each, in the mean of a piece's rows.

    Lanes lie side by side along an LDS row, then along k steps, then along m or n. There are 32
    banks of a dword, which serve as many lanes at a time as they can (docs/vgpu.md). What is not
    known to begin at a multiple of its own 16 bytes is written as two halves, one after the other.
    """
    elements, along_k = piece
    pitch, width = row.pitch, along_k * row.item.bytes
    free = LDS_LANES // _lanes_at_once(width)
    whole = _write_cycles(piece, row, Write(width, width))
    if width <= COPIES.write_bytes or not row.item.halves:
        return WriteCycles(free, whole - free)
    aligned = [elements * pitch % width == 0 == at * pitch % width for at in range(elements)]
    split = 2 * _write_cycles(piece, row, Write(width, width // 2))
    return WriteCycles(free, sum(whole if one else split for one in aligned) / elements - free)


@lru_cache(maxsize=256)
def row_write_cycles(piece: Pair, row: LdsRow) -> WriteCycles:
    """`lds_write_cycles` of all the writes of up to 16 bytes that a row of a piece takes.

    A copy is timed by this, but its pieces are chosen without it: those of fewer bytes a row took
    so many registers that half as many waves fitted.
    """
    elements, along_k = piece
    writes = row_writes(along_k, row.item)
    if writes == 1:
        return lds_write_cycles(piece, row)
    pitch, width = row.pitch, along_k * row.item.bytes
    whole, half = (
        _write_cycles(piece, row, Write(width, size))
        for size in (WIDEST_WRITE_BYTES, WIDEST_WRITE_BYTES // 2)
    )
    starts = [math.gcd(elements * pitch, at * pitch) for at in range(elements)]
    cycles = sum(2 * half if start % WIDEST_WRITE_BYTES else whole for start in starts) / elements
    free = LDS_LANES // _lanes_at_once(WIDEST_WRITE_BYTES)
    return WriteCycles(writes * free, writes * (cycles - free))


def row_writes(along_k: int, item: Item) -> int:
    """Writes of so many elements side by side."""
    return max(1, along_k * item.bytes // WIDEST_WRITE_BYTES) if item.several else 1


class Write(NamedTuple):
    """Bytes from one lane's write to its neighbour's along a row, and bytes of a write."""

    step: int
    width: int


def _lanes_at_once(width: int) -> int:
    return max(1, LDS_BANKS * DWORD // max(width, DWORD))


def _write_cycles(piece: Pair, row: LdsRow, write: Write) -> int:
    """Cycles in which 64 lanes write."""
    elements, along_k = piece
    together, in_row = _lanes_at_once(write.width), row.elements // along_k
    cycles = 0
    for first in range(0, LDS_LANES, together):
        dwords = set()
        for lane in range(first, first + together):
            next_row, step = divmod(lane // in_row, row.steps)
            at = next_row * elements * row.pitch + step * row.step_bytes
            at += lane % in_row * write.step
            dwords |= set(range(at // DWORD, -(-(at + write.width) // DWORD)))
        cycles += max(Counter(dword % LDS_BANKS for dword in dwords).values())
    return cycles
