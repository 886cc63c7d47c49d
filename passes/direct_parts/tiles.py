# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of a direct kernel in tile registers: rows are adjacent pixels, lanes result channels.

A tile of the source is read as it lies, a row a pixel. Those of the weights are packed with the
adjacent source channels that an instruction adds up. Where result pixels read outside, the
source is copied first, with zeros on either side of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.amx_ops import (
    ELEMENT_BYTES,
    ROW_BYTES,
    Tiles,
    address_of,
)
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.passes.cpu_kernel.shuffles import part_of
from conv_compiler.passes.direct_parts.moves import channels_last, lengthened
from conv_compiler.passes.direct_parts.neighbours import NeighbourPacking
from conv_compiler.passes.direct_parts.packing import Packing
from conv_compiler.passes.direct_parts.products import Results
from conv_compiler.passes.direct_parts.runs import Run, equal_runs
from conv_compiler.targets.host import TILE_INSTRUCTIONS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.lanes import TapRow
    from conv_compiler.passes.direct_parts.options import DirectOptions
    from conv_compiler.problem.slides import Slide


class Tiled(Results):
    """Result channels of a group in the lanes of tiles."""

    def __init__(self, options: DirectOptions, weight: Operand, element: ir.Type) -> None:
        super().__init__(options, weight, element)
        row = TILE_INSTRUCTIONS[options.instruction]
        self.side, self.multiplied = row.products, ir.Type.parse(row.element)
        self.depth = row.depth(options.sources)
        self.tiles = Tiles(
            options.instruction, self.depth, element, rows_of=0, rows=options.tile_rows
        )

    @cached_property
    def rows_of_tiles(self) -> int:
        """Tiles beside one another along the pixels."""
        return self.options.columns // self.options.tile_rows

    def packing(self) -> Packing:
        """[group, block, taps | sources, vector | lanes], adjacent sources together."""
        return NeighbourPacking(
            self.options, self.weight, self.multiplied, *self.axes(), neighbours=self.side
        )

    def source(self, source: Operand) -> Operand:
        """A copy where the source is of another type or order, or read outside of its rows."""
        options, element = self.options, self.multiplied
        if options.source_images:
            return replace(source, tensor=channels_last(source, element, options.source_rows))
        if any(options.pads) or ops.element_of(source.tensor) != element:
            return replace(source, tensor=lengthened(source, element, options.source_rows))
        return source

    def begin(self, source: ir.Value, packed: ir.Value) -> None:
        """Addresses of the operands, and room for the tiles of sums."""
        self.at_source, self.at_packed = address_of(source), address_of(packed)
        count = self.options.columns * self.options.vectors * TILE_ROWS
        self.kept = Address(stack_tensor([count], self.element)).first

    def runs(self, slide: Slide, phase: int) -> list[Run]:
        """Tiles of as many pixels each."""
        return equal_runs(slide, phase, self.options.columns)

    def zeros(self, units: int) -> list[ir.Value]:
        """Tiles of zeros."""
        return [self.tiles.zero() for _ in range(self.rows_of_tiles * self.options.vectors)]

    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """Steps of source channels, of one tap after another."""
        options, taps, vectors = self.options, tap_row.run.taps, self.options.vectors
        assert taps is not None
        bytes = self.multiplied.width // 8
        step = options.slides[2].step * options.source_pixel
        deep = self.depth * self.side

        def a_step(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            tap, channel = at[0], times(at[1], deep)
            pixel = plus(
                tap_row.source(taps.first.offset),
                times(tap, taps.step.offset * options.source_pixel),
                channel,
            )
            weight = plus(
                tap_row.weights(taps.first.tap),
                times(tap, taps.step.tap * self.tap_size),
                times(channel, options.block),
            )

            def row(number: int) -> ir.Value:
                at = plus(pixel, constant(number * options.tile_rows * step))
                address = plus(self.at_source, times(at, bytes))
                return self.tiles.factor(address, step * bytes // ELEMENT_BYTES, has_rows=True)

            def column(number: int) -> ir.Value:
                at = plus(weight, constant(number * TILE_ROWS * self.side))
                address = plus(self.at_packed, times(at, bytes))
                return self.tiles.factor(address, vectors * TILE_ROWS, has_rows=False)

            return self.multiplied_by(row, column, sums)

        return loops([taps.length, options.sources // deep], sums, a_step)

    def multiplied_by(
        self,
        row: Callable[[int], ir.Value],
        column: Callable[[int], ir.Value],
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """Sums with the products of rows by columns: factors of the shorter side stay in registers,
        those of the longer one come and go."""
        rows, columns, sums = self.rows_of_tiles, self.options.vectors, list(sums)
        stay = (
            [row(i) for i in range(rows)]
            if rows <= columns
            else [column(j) for j in range(columns)]
        )
        for number in range(max(rows, columns)):
            comes = column(number) if rows <= columns else row(number)
            for other, one in enumerate(stay):
                i, j = (other, number) if rows <= columns else (number, other)
                a, b = (one, comes) if rows <= columns else (comes, one)
                place = i * columns + j
                sums[place] = self.tiles.product.add(sums[place], a, b)
        return sums

    def settled(self, sums: list[ir.Value]) -> list[ir.Value]:
        """The addresses at which the tiles are kept."""
        size = self.options.tile_rows * ROW_BYTES
        found = [plus(self.kept, constant(number * size)) for number in range(len(sums))]
        for address, tile in zip(found, sums, strict=True):
            self.tiles.keep(address, constant(ROW_BYTES), tile)
        return found

    def results(self, sums: list[ir.Value], unit: int) -> list[ir.Value]:
        """The result channels of a pixel."""
        tile, row = divmod(unit, self.options.tile_rows)
        first, tail = tile * self.options.vectors, self.options.tail
        *found, last = (
            self.tiles.kept_row(sums[first + number], row) for number in range(self.options.vectors)
        )
        return [*found, part_of(last, 0, tail) if tail else last]
