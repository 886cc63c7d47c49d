# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `plane-kernel` while it is written: workgroups, planes, register tiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    at_most,
    constant,
    delinearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.products import product_of
from conv_compiler.passes.direct_parts.packing import loaded
from conv_compiler.passes.direct_parts.plane_copy import PlaneCopy
from conv_compiler.passes.direct_parts.plane_results import PlanePlace, PlaneResults
from conv_compiler.passes.direct_parts.plane_weights import PlaneWeights
from conv_compiler.passes.direct_parts.regions import by_workgroups
from conv_compiler.problem.slides import even_tiles
from conv_compiler.targets.limits import UNROLLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.problem.plane_sizes import PlaneSizes


class Planes:
    """The kernel of one problem. Planes are those of all images and groups."""

    def __init__(self, options: PlaneSizes, element: ir.Type) -> None:
        self.options, self.element = options, element
        self.row, self.column = options.slides
        self.sums = ir.VectorType.get([options.lanes], element)
        self.product = product_of(options.instruction or "fma", self.sums)

    def value(self, source: Operand, weight: Operand, result: Result) -> ir.Value:
        """The result in the form in which the program has it."""
        options = self.options
        self.weights = PlaneWeights(options, weight, self.sums, self.product)
        self.copy = PlaneCopy(options, source, self.element, self.product)
        self.results = PlaneResults(options, result)
        planes = options.batch * options.groups
        shape = [planes, options.results, self.row.outs, self.column.outs]
        sizes = [options.planes_share, options.channels, options.rows_share, self.column.outs]
        grid = [whole // size for whole, size in zip(shape, sizes, strict=True)]

        def workgroup(number: ir.Value, out: ir.Value) -> Piece:
            at = delinearized(number, grid)
            firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
            piece = slice_of(out, firsts, sizes, sizes)
            return self.workgroup(piece, *firsts[:3]), firsts, sizes

        element = ops.element_of(result.value)
        made = by_workgroups(shape, element, math.prod(grid), "contraction", workgroup)
        flat = ops.merge_axes(made, 0, len(shape))
        return ops.split_axis(flat, 0, ops.shape_of(result.value))

    def workgroup(
        self, piece: ir.Value, first: ir.Value, channel: ir.Value, top: ir.Value
    ) -> ir.Value:
        """Some rows and result channels of some planes."""
        options = self.options
        self.zero = vector.BroadcastOp(self.sums, ops.zero(self.element)).result
        room = self.copy.room(top)

        def a_plane(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            plane = plus(first, at[0])
            group = arith.RemUIOp(plane, constant(options.groups)).result
            copy = self.copy.of_plane(values[1], plane, top)
            place = PlanePlace(number=at[0], plane=plane, group=group, top=top, channel=channel)
            return [self.plane(values[0], copy, place), copy]

        return loops([options.planes_share], [piece, room], a_plane)[0]

    def plane(self, piece: ir.Value, copy: ir.Value, place: PlanePlace) -> ir.Value:
        """The rows of a plane: blocks of channels, then tiles of rows, then those of columns."""
        options = self.options
        held = self.weights.held(place.group) if options.is_depthwise else {}
        vectors = -(-self.column.outs // options.lanes)

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            first = times(at[0], options.block)
            base = self.weights.base(place.group, plus(place.channel, first))

            def a_tile(
                out: ir.Value, row: ir.Value, size: int, number: ir.Value, count: int
            ) -> ir.Value:
                begins = [times(plus(number, constant(i)), options.lanes) for i in range(count)]
                begins[-1] = at_most(max(0, self.column.outs - options.lanes), begins[-1])
                if options.is_depthwise:
                    sums = self.held_sums(copy, held, row, size, begins)
                else:
                    sums = self.packed_sums(copy, base, row, size, begins)
                return self.results.written(out, sums, place, (first, row, size), begins)

            def of_rows(out: ir.Value, row: ir.Value, size: int) -> ir.Value:
                return tiled(
                    out,
                    vectors,
                    options.vectors,
                    lambda out, number, count: a_tile(out, row, size, number, count),
                )

            return [tiled(values[0], options.rows_share, options.rows, of_rows)]

        return loops([options.channels // options.block], [piece], a_block)[0]

    def held_sums(
        self,
        copy: ir.Value,
        held: dict[int, ir.Value],
        row: ir.Value,
        size: int,
        begins: list[ir.Value],
    ) -> list[ir.Value]:
        """The sums of a depthwise tile: each vector of the copy once, for all rows that meet it."""
        options, low = self.options, self.options.reach(0)[0]
        sums = [self.zero] * (size * len(begins))
        step = self.row.step
        for source in options.tile_rows(size):
            meets = [
                (i, read)
                for i in range(size)
                for read in options.reads(0)
                if i * step + read.offset - low == source
            ]
            line = times(plus(times(row, step), constant(source)), options.row_elements)
            for read in options.reads(1):
                for j, begin in enumerate(begins):
                    value = self.loaded(copy, line, begin, read.offset)
                    for i, tap in meets:
                        own = i * len(begins) + j
                        factor = held[self.weights.tap(tap, read)]
                        sums[own] = self.product.add(sums[own], factor, value)
        return sums

    def packed_sums(
        self,
        copy: ir.Value,
        base: ir.Value,
        row: ir.Value,
        size: int,
        begins: list[ir.Value],
    ) -> list[ir.Value]:
        """The sums of a tile, result channel after result channel: each weight once, for all rows
        and vectors."""
        options, low, count = self.options, self.options.reach(0)[0], len(begins)
        most = max(1, UNROLLED // options.taps)
        together = max(n for n in range(1, most + 1) if options.steps % n == 0)
        line = times(row, self.row.step * options.row_elements)

        def a_step(step: ir.Value, sums: list[ir.Value]) -> None:
            first = plus(line, times(step, options.copied_rows * options.row_elements))
            for read in options.reads(1):
                found = {
                    source: [
                        self.loaded(
                            copy,
                            plus(first, constant(source * options.row_elements)),
                            begin,
                            read.offset,
                        )
                        for begin in begins
                    ]
                    for source in options.tile_rows(size)
                }
                for tap in options.reads(0):
                    factors = self.weights.of_tap(base, step, self.weights.tap(tap, read))
                    for number, factor in enumerate(factors):
                        for i in range(size):
                            values = found[i * self.row.step + tap.offset - low]
                            for j, value in enumerate(values):
                                own = (number * size + i) * count + j
                                sums[own] = self.product.add(sums[own], factor, value)

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            sums = list(values)
            for behind in range(together):
                a_step(plus(times(at[0], together), constant(behind)), sums)
            return sums

        zeros = [self.zero] * (options.block * size * count)
        return loops([options.steps // together], zeros, some)

    def loaded(self, copy: ir.Value, line: ir.Value, begin: ir.Value, offset: int) -> ir.Value:
        """What a tap of a row of the copy meets for the result pixels from one on."""
        options = self.options
        unit, phase = divmod(offset, self.column.step)
        place = options.phases.index(phase) * options.phase_pixels + unit + options.front
        return loaded(copy, plus(line, begin, constant(place)), options.lanes)


def tiled(
    out: ir.Value,
    units: int,
    most: int,
    body: Callable[[ir.Value, ir.Value, int], ir.Value],
) -> ir.Value:
    """A tensor that even tiles of so many units at most make, in loops over tiles of one size."""
    tiles = list(even_tiles(units, most))
    for size in sorted({size for _, size in tiles}, reverse=True):
        same = [first for first, count in tiles if count == size]

        def some(
            at: list[ir.Value], values: list[ir.Value], size: int = size, begin: int = same[0]
        ) -> list[ir.Value]:
            return [body(values[0], plus(times(at[0], size), constant(begin)), size)]

        (out,) = loops([len(same)], [out], some)
    return out
