# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of a tile of the output gradient with its window, both in LDS.

`ldmatrix` transposes blocks on the way: their lines are pixels, and a product's rows and columns
are channels. Each lane gives the address of one line. So lines may lie anywhere, and the two eights
of rows that a product has may be of any two taps.
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.problem.gradient_tiles import PIECE, STEP, GradientTile, Row

# The sums of a product: four of a lane.
Sums = list[list[ir.Value]]
# Whether a pixel of the tile is missing, by its place along images and axes; None for never.
Missing = Callable[[list[ir.Value]], ir.Value | None]
# The most blocks that one instruction reads.
FOUR, TWO = 4, 2
# Pairs of rows that are read before the first of them is multiplied.
AHEAD = 4


class GradientProducts:
    """A wave's products."""

    def __init__(
        self,
        tile: GradientTile,
        dtype: str,
        pitches: tuple[int, int],
        lds: ir.Value,
        wave: ir.Value,
        lane: ir.Value,
    ) -> None:
        """Of LDS whose planes are so many pieces apart, those of the window in front."""
        self.tile, self.dtype, self.pitches = tile, dtype, pitches
        self.lane = lane
        third, second, self.line = cut(lane, [2, 2, PIECE])
        # Of A the second block has the later rows and the third the later pixels, of B the second
        # has the later pixels and the third the later columns.
        self.late_rows, self.a_half = second, third
        self.b_half, self.late_columns = second, third
        own, share = cut(wave, [1, tile.result_pieces // tile.group_pieces])
        self.group = linear(own, tile.wave_groups)
        self.piece = linear(share, tile.group_pieces)
        plane = linear(wave, tile.wave_pieces)
        self.a = linear(self.group, tile.source_pieces * pitches[0] * ptx.PIECE, lds)
        first = tile.planes[0] * pitches[0] * ptx.PIECE
        self.b = linear(linear(plane, pitches[1] * ptx.PIECE, first), 1, lds)

    def zeros(self) -> Sums:
        """The sums before the first product: of each group, pair of rows and piece."""
        tile = self.tile
        zero = ops.zero(ir.F32Type.get())
        return [[zero] * FOUR for _ in range(tile.wave_pieces * len(tile.rows))]

    def sums(self, sums: Sums, shift: ir.Value, missing: Missing) -> Sums:
        """The sums with the products of the tile so many bytes behind the start of LDS."""
        found, tile = list(sums), self.tile
        a, b = (linear(one, 1, shift) for one in (self.a, self.b))
        work = [
            (step, group, pair)
            for step in range(tile.steps)
            for group in range(tile.wave_groups)
            for pair in range(len(tile.rows))
        ]
        columns = dict[int, list[list[ir.Value]]]()
        lines = dict[int, ir.Value]()
        rows = list[list[ir.Value]]()

        def read(step: int, group: int, pair: int) -> None:
            if step not in columns:
                columns[step] = self._columns(b, step)
                line = self._pixel_line(step, missing)
                lines[step] = linear(line, ptx.PIECE, a)
            rows.append(self._rows(lines[step], group, pair))

        for one in work[:AHEAD]:
            read(*one)
        for at, (step, group, pair) in enumerate(work):
            if at + AHEAD < len(work):
                read(*work[at + AHEAD])
            for piece in range(tile.group_pieces):
                place = self.place(group, pair, piece)
                right = columns[step][group * tile.group_pieces + piece]
                found[place] = ptx.product(found[place], rows[at], right, self.dtype)
        return found

    def _rows(self, line: ir.Value, group: int, pair: int) -> list[ir.Value]:
        """The registers of a pair of rows of a group, of the pixels of a step."""
        first, second = self.tile.rows[pair]
        start = self._behind(group, first)
        more = self._behind(group, second or first) - start
        address = linear(self.late_rows, more, line) if more else line
        return ptx.read_matrices(address, start, transposed=True)

    def place(self, group: int, pair: int, piece: int) -> int:
        """The number of the sums of a group, a pair of rows and a piece of columns."""
        return (group * len(self.tile.rows) + pair) * self.tile.group_pieces + piece

    def _behind(self, group: int, row: Row) -> int:
        """Bytes from the lines of the wave's first group and tap to those of a row."""
        tile = self.tile
        plane = group * tile.source_pieces + row.piece
        return (plane * self.pitches[0] + tile.tap_line(tile.taps[row.tap])) * ptx.PIECE

    def _columns(self, b: ir.Value, step: int) -> list[list[ir.Value]]:
        """The registers of each piece of the output gradient, of a step."""
        found = list[list[ir.Value]]()
        pitch = self.pitches[1] * ptx.PIECE
        pixel = linear(self.b_half, PIECE, self.line)
        address = linear(pixel, ptx.PIECE, b)
        both = arith.AddIOp(address, linear(self.late_columns, pitch)).result
        for piece in range(0, self.tile.wave_pieces, 2):
            blocks = FOUR if piece + 1 < self.tile.wave_pieces else TWO
            shift = step * STEP * ptx.PIECE + piece * pitch
            read = ptx.read_matrices(both if blocks == FOUR else address, shift, True, blocks)
            found += [read[at : at + 2] for at in range(0, blocks, 2)]
        return found

    def _pixel_line(self, step: int, missing: Missing) -> ir.Value:
        """The line at which the first tap meets this lane's pixel of a step."""
        tile = self.tile
        pixel = linear(linear(self.a_half, PIECE, self.line), 1, step * STEP)
        places = cut(pixel, [tile.images, *tile.pixels])
        steps = (tile.line_steps[0], *tile.pixel_lines())
        line = number(0)
        for place, by in zip(places, steps, strict=True):
            line = linear(place, by, line)
        if (gone := missing(places)) is not None:
            line = arith.SelectOp(gone, number(tile.lines), line).result
        return line
