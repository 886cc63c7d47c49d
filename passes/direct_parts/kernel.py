# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `direct-kernel` while it is written: workgroups, rows and register tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    between,
    constant,
    delinearized,
    linearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.direct_parts.lanes import TapRow
from conv_compiler.passes.direct_parts.moves import channels_first
from conv_compiler.passes.direct_parts.packing import loaded, stored
from conv_compiler.passes.direct_parts.reaches import Reach, by_phase
from conv_compiler.passes.direct_parts.regions import by_workgroups
from conv_compiler.passes.direct_parts.runs import Run, units_of

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.direct_parts.lanes import Lanes
    from conv_compiler.passes.direct_parts.options import DirectOptions

_AXES = 5


class Kernel:
    """The kernel of one problem: axes of the result are image, plane, row, column and channel."""

    def __init__(
        self, options: DirectOptions, lanes: Lanes, source: Operand, result: Result
    ) -> None:
        self.options, self.lanes, self.source, self.result = options, lanes, source, result
        self.plane, self.row, self.column = options.slides
        self.tensor, self.extra = source.flat(), result.extra()
        self.share = lanes.blocks // options.shares
        overlap = lanes.blocks * lanes.block_channels != options.result_pixel
        if lanes.blocks % options.shares or (overlap and options.shares > 1):
            raise UnsupportedStrategy(
                f"shares {options.shares}: they divide no {lanes.blocks} blocks of "
                f"{lanes.block_channels} channels; use 1"
            )

    def value(self, packed: ir.Value) -> ir.Value:
        """The result in the form in which the program has it."""
        options, self.packed = self.options, packed
        shape = [options.batch, self.plane.outs, self.row.outs, self.column.outs]
        shape.append(options.result_pixel)
        channels = options.result_pixel // options.shares
        sizes = [1, 1, options.rows, self.column.outs, channels]
        grid = [whole // size for whole, size in zip(shape, sizes, strict=True)]
        # Axes that a piece has: those of one element are left out.
        self.kept = [axis for axis, size in enumerate(sizes) if size != 1]

        def workgroup(number: ir.Value, out: ir.Value) -> Piece:
            at = delinearized(number, grid)
            firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
            self.image, self.depth, self.top, _, self.channel = firsts
            self.first_block = times(at[-1], self.share)
            return self.workgroup(slice_of(out, firsts, sizes)), firsts, sizes

        element = ops.element_of(self.result.value)
        made = by_workgroups(shape, element, math.prod(grid), "contraction", workgroup)
        flat = ops.merge_axes(made, 0, _AXES)
        if images := options.result_images:
            pixels = math.prod(shape[:-1]) // images
            flat = channels_first(flat, images, pixels, shape[-1])
        return ops.split_axis(flat, 0, ops.shape_of(self.result.value))

    def workgroup(self, piece: ir.Value) -> ir.Value:
        """One workgroup's rows of its share of the channels."""
        rows = self.options.rows
        self.lanes.begin(self.tensor, self.packed)
        if self.options.inner_blocks:
            return loops([rows], [piece], lambda at, values: [self.a_row(values[0], at[0], None)])[
                0
            ]

        def of_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [self.a_row(values[0], at[1], at[0])]

        return loops([self.share, rows], [piece], of_block)[0]

    def a_row(self, piece: ir.Value, row: ir.Value, block: ir.Value | None) -> ir.Value:
        """A row of result pixels, whose plane and whose row are each of one of the phases."""

        def of_plane(planes: Reach) -> ir.Value:
            def of_row(rows: Reach) -> ir.Value:
                return self.of_phase(piece, row, (planes, rows), block)

            return by_phase(self.row, plus(self.top, row), piece.type, of_row)

        return by_phase(self.plane, self.depth, piece.type, of_plane)

    def of_phase(
        self, piece: ir.Value, row: ir.Value, reaches: tuple[Reach, Reach], block: ir.Value | None
    ) -> ir.Value:
        """A row of result pixels in runs of register tiles."""
        for across in range(self.column.phases):
            if not units_of(self.column, across):
                continue
            for run in self.lanes.runs(self.column, across):
                tile = partial(self.tile, run, across, row, reaches)
                counts = [run.repeat] if block is not None else [run.repeat, self.share]

                def body(
                    at: list[ir.Value],
                    values: list[ir.Value],
                    tile: Callable[..., ir.Value] = tile,
                ) -> list[ir.Value]:
                    return [tile(values[0], at[0], at[1] if block is None else block)]

                piece = loops(counts, [piece], body)[0]
        return piece

    def tile(
        self,
        run: Run,
        across: int,
        row: ir.Value,
        reaches: tuple[Reach, Reach],
        piece: ir.Value,
        number: ir.Value,
        block: ir.Value,
    ) -> ir.Value:
        """The piece with register tile `number` of a run in it."""
        lanes = self.lanes
        first = plus(constant(run.first), times(number, run.units))
        whole_block = plus(self.first_block, block)
        sums = lanes.zeros(run.units)
        if run.reads and all(one.reads.length for one in reaches):
            sums = self.summed(run, first, reaches, whole_block, sums)
        sums = lanes.settled(sums)
        index = times(first, self.column.phases)
        channel = lanes.result_channel(block)
        for unit in range(run.units):
            column = plus(index, constant(unit * self.column.phases + across))
            shift = 0
            for value in lanes.results(sums, unit):
                here = plus(channel, constant(shift))
                piece = self.written(piece, value, row, column, here)
                (length,) = ir.VectorType(value.type).shape
                shift += length
        assert shift == lanes.block_channels
        return piece

    def summed(
        self,
        run: Run,
        first: ir.Value,
        reaches: tuple[Reach, Reach],
        block: ir.Value,
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """The sums of a register tile: loops over the planes and rows of the source it reads."""
        options, lanes = self.options, self.lanes
        pixel, (deep, down, _) = options.source_pixel, options.taps
        across = lanes.row_taps
        planes, rows = reaches
        size = self.row.size * self.column.size * pixel
        column = plus(times(first, self.column.step * pixel), lanes.source_channel(block))
        image = plus(times(self.image, self.plane.size * size), column)
        weights = times(block, lanes.tap_size * deep * down * across)

        def of_plane(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            plane = plus(image, times(planes.pixel(at), size))
            plane_weights = plus(weights, times(planes.tap(at), down * across * lanes.tap_size))

            def of_row(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                base = plus(plane, times(rows.pixel(at), self.column.size * pixel))
                row_weights = plus(plane_weights, times(rows.tap(at), across * lanes.tap_size))

                def source(columns: int) -> ir.Value:
                    return plus(base, constant(columns * pixel))

                def weight(tap: int) -> ir.Value:
                    return plus(row_weights, constant(tap * lanes.tap_size))

                tap_row = TapRow(
                    run=run,
                    source=source,
                    weights=weight,
                    operand=self.source,
                    tensor=self.tensor,
                    packed=self.packed,
                )
                return lanes.add(sums, tap_row)

            return between(rows.low, rows.high, sums, of_row)

        return between(planes.low, planes.high, sums, of_plane)

    def written(
        self,
        piece: ir.Value,
        sums: ir.Value,
        row: ir.Value,
        column: ir.Value,
        channel: ir.Value,
    ) -> ir.Value:
        """The piece with a pixel's channels in their place, behind the op on them."""
        options = self.options
        extra: Sequence[ir.Value] = []
        if self.extra:
            pixel = linearized(
                [self.image, self.depth, plus(self.top, row), column],
                [options.batch, self.plane.outs, self.row.outs, self.column.outs],
            )
            of_channel = plus(self.channel, channel)
            of_result = plus(times(pixel, options.result_pixel), of_channel)
            (length,) = ir.VectorType(sums.type).shape
            first = {"element": of_result, "channel": of_channel}
            extra = [one.read(loaded, first, length) for one in self.extra]
        value = self.result.finished(sums, extra)
        places = [constant(0), constant(0), row, column, channel]
        return stored(value, piece, [places[axis] for axis in self.kept])
