# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a wave's own sums are stored: in whole rows, by way of LDS of its own.

Of 64 rows wave w of a wave group has 16, as `stores.py` says. A wave that stores its own rows waits
for no other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import WARP_GROUP, WAVE
from conv_compiler.passes.wgmma_parts.stores import (
    PAIR,
    QUAD,
    Line,
    Place,
    as_word,
    load_vector,
    read_vector,
    row_words,
    store_vector,
    where,
)

# Rows of each 64 that are a wave's.
OWN_ROWS = ptx.ROWS // (WARP_GROUP // WAVE)


@dataclass(frozen=True, kw_only=True)
class WaveStore:
    """A wave's store: `width` adjacent ones of `columns` a lane at a time, by `line` to a place.

    The workgroup's LDS for it begins `behind` words behind the start, which is a multiple of four.
    """

    columns: int
    width: int
    thread: ir.Value
    behind: int
    line: Line

    @property
    def is_narrow(self) -> bool:
        """Whether LDS has the sums rounded already, in pairs."""
        return self.line.narrows(self.width)

    @property
    def _pitch(self) -> int:
        return row_words(self.columns, self.is_narrow)

    def write(self, lds: ir.Value, sums: Sequence[Sequence[ir.Value]], place: Place) -> None:
        """Store a wave's sums of each 64 rows: of row r of block b, the tile's row b * 64 + r, by
        way of its LDS. `place` counts rows from the wave group's first one."""
        lane = arith.RemUIOp(self.thread, number(WAVE)).result
        wave = arith.DivUIOp(self.thread, number(WAVE)).result
        start = linear(wave, OWN_ROWS * self._pitch, self.behind)
        row_of_lane, pair = cut(lane, [8, 4])
        words = 1 if self.is_narrow else PAIR
        first = linear(row_of_lane, self._pitch, linear(pair, words, start))
        across = self.columns // self.width
        row, column = cut(lane, [max(1, WAVE // across), min(across, WAVE)])
        adjacent = self.width // PAIR if self.is_narrow else self.width
        source = linear(row, self._pitch, linear(column, adjacent, start))
        column = linear(column, self.width)
        row = linear(self._in_group(wave), OWN_ROWS, row)
        for block, own in enumerate(sums):
            self._to_lds(lds, own, first)
            ptx.sync_wave()
            for piece in range(0, OWN_ROWS * across, WAVE):
                behind, right = divmod(piece, across)
                of_piece = linear(column, 1, right * self.width)
                at, exists = place(linear(row, 1, block * ptx.ROWS + behind), of_piece)
                with where(exists):
                    shift = behind * self._pitch + right * adjacent
                    self._line(lds, linear(source, 1, shift), at)
            ptx.sync_wave()

    def _in_group(self, wave: ir.Value) -> ir.Value:
        return arith.RemUIOp(wave, number(WARP_GROUP // WAVE)).result

    def _to_lds(self, lds: ir.Value, own: Sequence[ir.Value], first: ir.Value) -> None:
        for half in range(2):
            for eight in range(self.columns // 8):
                at = 4 * eight + 2 * half
                words = list(own[at : at + PAIR])
                if self.is_narrow:
                    words = [as_word(words, self.line.element)]
                shift = half * 8 * self._pitch + eight * 8 * len(words) // PAIR
                store_vector(words, lds, linear(first, 1, shift))

    def _line(self, lds: ir.Value, source: ir.Value, at: ir.Value) -> None:
        if self.is_narrow:
            self.line.copy(read_vector(lds, source, self.width // PAIR), at)
            return
        piece = min(self.width, QUAD)
        found: list[ir.Value] = []
        for part in range(0, self.width, piece):
            found += load_vector(lds, linear(source, 1, part), piece)
        self.line.store(found, at)
