# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `direct-kernel` while it is written: workgroups, rows and register tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, tensor

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    at_least,
    at_most,
    choice,
    constant,
    delinearized,
    divided,
    less,
    linearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.direct_parts.packing import loaded, stored
from conv_compiler.passes.direct_parts.runs import Progression, Run, progression, runs, units_of

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.direct_parts.lanes import Lanes
    from conv_compiler.passes.direct_parts.options import DirectOptions

_AXES = 4


class Kernel:
    """The kernel of one problem: axes of the result are image, row, column and channel."""

    def __init__(
        self, options: DirectOptions, lanes: Lanes, source: Operand, result: Result
    ) -> None:
        self.options, self.lanes, self.source, self.result = options, lanes, source, result
        self.row, self.column = options.slides
        self.tensor, self.extra = source.flat(), result.extra()
        self.share = lanes.blocks // options.shares

    def value(self, packed: ir.Value) -> ir.Value:
        """The result in the form in which the program has it."""
        options, self.packed = self.options, packed
        shape = [options.batch, self.row.outs, self.column.outs, options.result_pixel]
        channels = self.share * self.lanes.block_channels
        sizes = [1, options.rows, self.column.outs, channels]
        grid = [whole // size for whole, size in zip(shape, sizes, strict=True)]
        element = ops.element_of(self.result.value)
        region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, element))
        dispatches.count_workgroups(region)
        # Axes that a piece has: those of one element are left out.
        self.kept = [axis for axis, size in enumerate(sizes) if size != 1]
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, element).result

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                at = delinearized(ids[0], [grid[0], grid[1], 1, grid[3]])
                firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
                self.image, self.top, _, self.channel = firsts
                self.first_block = times(at[3], self.share)
                return self.workgroup(slice_of(out, firsts, sizes)), firsts, sizes

            count = grid[0] * grid[1] * grid[3]
            made = forall((count,), out, ["#iree_codegen.workgroup_mapping<x>"], workgroup)
            made.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            dispatches.dispatch_return(made)
        flat = ops.merge_axes(region.results[0], 0, _AXES)
        return ops.split_axis(flat, 0, ops.shape_of(self.result.value))

    def workgroup(self, piece: ir.Value) -> ir.Value:
        """One workgroup's rows of its share of the channels."""
        rows = self.options.rows
        if not self.lanes.outer_blocks:
            return loops([rows], [piece], lambda at, values: [self.a_row(values[0], at[0], None)])[
                0
            ]

        def of_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [self.a_row(values[0], at[1], at[0])]

        return loops([self.share, rows], [piece], of_block)[0]

    def a_row(self, piece: ir.Value, row: ir.Value, block: ir.Value | None) -> ir.Value:
        """A row of result pixels, which is of one of the phases."""
        phases, y = self.row.phases, plus(self.top, row)
        if phases == 1:
            return self.of_phase(piece, row, y, 0, block)
        unit = divided(y, phases)
        phase = arith.RemUIOp(y, constant(phases)).result

        def others(first: int) -> ir.Value:
            this = partial(self.of_phase, piece, row, unit, first, block)
            if first == phases - 1:
                return this()
            test = arith.CmpIOp(arith.CmpIPredicate.eq, phase, constant(first)).result
            return choice(test, piece.type, this, lambda: others(first + 1))

        return others(0)

    def of_phase(
        self, piece: ir.Value, row: ir.Value, unit: ir.Value, phase: int, block: ir.Value | None
    ) -> ir.Value:
        """A row of unit `unit` of a phase, in runs of register tiles."""
        reads = progression(self.row.window[phase])
        top = plus(times(unit, self.row.step), constant(reads.first.offset))
        between = self.inside(top, unit, phase, reads)
        for across in range(self.column.phases):
            if not units_of(self.column, across):
                continue
            for run in runs(self.column, across, self.options.columns):
                tile = partial(self.tile, run, across, row, top, between, reads)
                counts = [run.repeat] if block is not None else [run.repeat, self.share]

                def body(
                    at: list[ir.Value],
                    values: list[ir.Value],
                    tile: Callable[..., ir.Value] = tile,
                ) -> list[ir.Value]:
                    return [tile(values[0], at[0], at[1] if block is None else block)]

                piece = loops(counts, [piece], body)[0]
        return piece

    def inside(
        self, top: ir.Value, unit: ir.Value, phase: int, reads: Progression
    ) -> tuple[ir.Value, ir.Value]:
        """The first of the row's reads that meets the source, and the first behind those."""
        step, size = reads.step.offset, self.row.size
        last = (units_of(self.row, phase) - 1) * self.row.step
        first = reads.first.offset
        low, high = constant(0), constant(reads.length)
        if first < 0:
            missing = at_least(0, less(constant(0), top))
            low = divided(plus(missing, constant(step - 1)), step)
        if first + last + (reads.length - 1) * step >= size:
            left = at_least(0, less(constant(size - 1 + step), top))
            high = at_most(reads.length, divided(left, step))
        return low, high

    def tile(
        self,
        run: Run,
        across: int,
        row: ir.Value,
        top: ir.Value,
        between: tuple[ir.Value, ir.Value],
        reads: Progression,
        piece: ir.Value,
        number: ir.Value,
        block: ir.Value,
    ) -> ir.Value:
        """The piece with register tile `number` of a run in it."""
        options, lanes = self.options, self.lanes
        first = plus(constant(run.first), times(number, run.units))
        whole_block = plus(self.first_block, block)
        sums = lanes.zeros(run.units)
        if run.reads and reads.length:
            sums = self.summed(run, first, top, between, reads, whole_block, sums)
        index = times(first, self.column.phases)
        channel = times(block, lanes.block_channels)
        for unit in range(run.units):
            column = plus(index, constant(unit * self.column.phases + across))
            shift = 0
            for value in lanes.results(sums, unit):
                here = plus(channel, constant(shift))
                piece = self.written(piece, value, row, column, here)
                (length,) = ir.VectorType(value.type).shape
                shift += length
        assert shift == lanes.block_channels == options.result_pixel // lanes.blocks
        return piece

    def summed(
        self,
        run: Run,
        first: ir.Value,
        top: ir.Value,
        between: tuple[ir.Value, ir.Value],
        reads: Progression,
        block: ir.Value,
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """The sums of a register tile: a loop over the rows of the source that it reads."""
        options, lanes = self.options, self.lanes
        pixel, (_, across) = options.source_pixel, options.taps
        channel = lanes.source_channel(block)
        column = plus(times(first, self.column.step * pixel), channel)
        weights = times(block, lanes.tap_size * options.taps[0] * across)
        size = self.row.size * self.column.size * pixel

        def of_row(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            y = plus(top, times(at, reads.step.offset))
            base = plus(times(self.image, size), times(y, self.column.size * pixel), column)
            tap = plus(constant(reads.first.tap), times(at, reads.step.tap))
            row_weights = plus(weights, times(tap, across * lanes.tap_size))

            def source(columns: int) -> ir.Value:
                return plus(base, constant(columns * pixel))

            def weight(tap: int) -> ir.Value:
                return plus(row_weights, constant(tap * lanes.tap_size))

            return lanes.add(sums, source, weight, (self.source, self.tensor, self.packed), run)

        if reads.length == 1 and self.row.size == 1:
            return of_row(constant(0), sums)
        loop = scf.ForOp(*between, constant(1), sums)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(of_row(loop.induction_variable, list(loop.inner_iter_args)))
        return list(loop.results)

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
                [self.image, plus(self.top, row), column],
                [options.batch, self.row.outs, self.column.outs],
            )
            of_channel = plus(self.channel, channel)
            of_result = plus(times(pixel, options.result_pixel), of_channel)
            (length,) = ir.VectorType(sums.type).shape
            first = {"element": of_result, "channel": of_channel}
            extra = [one.read(loaded, first, length) for one in self.extra]
        value = self.result.finished(sums, extra)
        places = [constant(0), row, column, channel]
        return stored(value, piece, [places[axis] for axis in self.kept])
