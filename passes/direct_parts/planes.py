# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `plane-kernel` while it is written: planes, copied rows, register tiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    choice,
    constant,
    delinearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.passes.cpu_kernel.products import product_of
from conv_compiler.passes.cpu_kernel.shuffles import part_of
from conv_compiler.passes.direct_parts.packing import in_all_lanes, loaded, stored, widened
from conv_compiler.passes.direct_parts.regions import by_workgroups
from conv_compiler.problem.slides import even_tiles

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.problem.plane_sizes import PlaneSizes


class Planes:
    """The kernel of one problem. Planes are those of all images and groups."""

    def __init__(self, options: PlaneSizes, element: ir.Type) -> None:
        self.options, self.element = options, element
        self.row, self.column = options.slides
        self.sums = ir.VectorType.get([options.lanes], element)
        self.product = product_of("fma", self.sums)

    def value(self, source: Operand, weight: Operand, result: Result) -> ir.Value:
        """The result in the form in which the program has it."""
        options = self.options
        self.source, self.flat = source, source.flat()
        self.weight, self.weights = weight, weight.flat()
        self.result, self.extra = result, result.extra()
        shape = [options.batch * options.groups, self.row.outs, self.column.outs]
        sizes = [options.planes_share, options.rows_share, self.column.outs]
        grid = [whole // size for whole, size in zip(shape, sizes, strict=True)]

        def workgroup(number: ir.Value, out: ir.Value) -> Piece:
            at = delinearized(number, grid)
            firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
            piece = slice_of(out, firsts, sizes, sizes)
            return self.workgroup(piece, firsts[0], firsts[1]), firsts, sizes

        element = ops.element_of(result.value)
        made = by_workgroups(shape, element, math.prod(grid), "contraction", workgroup)
        flat = ops.merge_axes(made, 0, len(shape))
        return ops.split_axis(flat, 0, ops.shape_of(result.value))

    def workgroup(self, piece: ir.Value, first: ir.Value, top: ir.Value) -> ir.Value:
        """Some rows of some planes."""
        options = self.options
        self.zero = vector.BroadcastOp(self.sums, ops.zero(self.element)).result
        room = stack_tensor([options.copied_rows * options.row_pixels], self.element)

        def a_plane(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            plane = plus(first, at[0])
            group = arith.RemUIOp(plane, constant(options.groups)).result
            copy = self.copied(room, plane, top)
            return [self.plane(values[0], copy, (at[0], plane, group), top)]

        return loops([options.planes_share], [piece], a_plane)[0]

    def copied(self, room: ir.Value, plane: ir.Value, top: ir.Value) -> ir.Value:
        """The source rows of a plane that the workgroup's rows meet, with zeros for pads."""
        options, low = self.options, self.options.reach(0)[0]
        base = times(plane, self.row.size * self.column.size)

        def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            place = times(at[0], options.row_pixels)
            row = arith.AddIOp(plus(top, at[0]), constant(low)).result  # it may be negative
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, row, constant(self.row.size)).result
            here = plus(base, times(row, self.column.size))
            return [
                choice(
                    inside,
                    values[0].type,
                    lambda: self.row_of(values[0], place, here),
                    lambda: self.zeros(values[0], place, 0, options.row_pixels),
                )
            ]

        return loops([options.copied_rows], [room], a_row)[0]

    def row_of(self, copy: ir.Value, place: ir.Value, here: ir.Value) -> ir.Value:
        """The copy with a source row in it; the last vector begins earlier where vectors are no
        whole row."""
        options, size = self.options, self.column.size
        lanes, front = min(options.lanes, size), options.front
        copy = self.zeros(copy, place, 0, front)
        copy = self.zeros(copy, place, front + size, options.row_pixels)

        def moved(copy: ir.Value, pixel: ir.Value) -> ir.Value:
            value = self.source.applied(loaded(self.flat, plus(here, pixel), lanes))
            there = plus(place, pixel, constant(front))
            return stored(widened(value, self.element), copy, [there])

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [moved(values[0], times(at[0], lanes))]

        (copy,) = loops([size // lanes], [copy], some)
        return moved(copy, constant(size - lanes)) if size % lanes else copy

    def zeros(self, copy: ir.Value, place: ir.Value, first: int, behind: int) -> ir.Value:
        """The copy with zeros from one pixel of a row to before another: whole vectors, of which
        the last begins earlier, or one shorter vector."""
        lanes = min(self.options.lanes, behind - first)
        if not lanes:
            return copy
        zero = part_of(self.zero, 0, lanes) if lanes < self.options.lanes else self.zero
        for pixel in [*range(first, behind - lanes, lanes), behind - lanes]:
            copy = stored(zero, copy, [plus(place, constant(pixel))])
        return copy

    def plane(
        self,
        piece: ir.Value,
        copy: ir.Value,
        places: tuple[ir.Value, ir.Value, ir.Value],
        top: ir.Value,
    ) -> ir.Value:
        """The rows of a plane: its number in the workgroup, among all planes, and its group."""
        options, outs = self.options, self.column.outs
        number, plane, group = places
        factors = self.factors(group)
        whole, rest = divmod(outs, options.lanes)
        begins = [i * options.lanes for i in range(whole)]
        if rest:
            begins.append(max(0, outs - options.lanes))
        tiles = list(even_tiles(options.rows_share, options.rows))
        for size in sorted({size for _, size in tiles}, reverse=True):
            same = [first for first, count in tiles if count == size]

            def body(
                at: list[ir.Value], values: list[ir.Value], size: int = size, begin: int = same[0]
            ) -> list[ir.Value]:
                (out,) = values
                row = plus(times(at[0], size), constant(begin))
                for first, count in even_tiles(len(begins), options.vectors):
                    columns = begins[first : first + count]
                    sums = self.summed(copy, factors, row, size, columns)
                    for i in range(size):
                        here = plus(row, constant(i))
                        for j, column in enumerate(columns):
                            at_ = (plus(top, here), constant(column))
                            value = self.finished(sums[i * count + j], plane, group, at_)
                            out = stored(value, out, [number, here, constant(column)])
                return [out]

            piece = loops([len(same)], [piece], body)[0]
        return piece

    def factors(self, group: ir.Value) -> dict[tuple[int, int], ir.Value]:
        """The weight of each tap, in all lanes."""
        options = self.options
        step, _, tap_step, _ = options.weight_steps
        columns = options.filter[-1]
        found = {}
        for row in options.reads(0):
            for column in options.reads(1):
                tap = row.tap * columns + column.tap
                at = plus(times(group, step), constant(tap * tap_step))
                value = self.weight.applied(in_all_lanes(self.weights, at, 1))
                scalar = vector.ExtractOp(widened(value, self.element), [], [0]).result
                found[row.tap, column.tap] = vector.BroadcastOp(self.sums, scalar).result
        return found

    def summed(
        self,
        copy: ir.Value,
        factors: dict[tuple[int, int], ir.Value],
        row: ir.Value,
        size: int,
        columns: list[int],
    ) -> list[ir.Value]:
        """The sums of a register tile: each vector of the copy once, for all rows that meet it."""
        options, low = self.options, self.options.reach(0)[0]
        sums = [self.zero] * (size * len(columns))
        taps = {read.offset - low: read.tap for read in options.reads(0)}
        for source in range(size + max(taps)):
            meets = [(i, taps[source - i]) for i in range(size) if source - i in taps]
            place = times(plus(row, constant(source)), options.row_pixels)
            for read in options.reads(1) if meets else ():
                for j, column in enumerate(columns):
                    at = plus(place, constant(column + read.offset + options.front))
                    value = loaded(copy, at, options.lanes)
                    for i, tap in meets:
                        own = i * len(columns) + j
                        sums[own] = self.product.add(sums[own], factors[tap, read.tap], value)
        return sums

    def finished(
        self, sums: ir.Value, plane: ir.Value, group: ir.Value, at: tuple[ir.Value, ir.Value]
    ) -> ir.Value:
        """Pixels of the result behind the op on the sums; a row of fewer pixels than lanes has just
        these."""
        outs = self.column.outs
        lanes = min(self.options.lanes, outs)
        if lanes < self.options.lanes:
            sums = part_of(sums, 0, lanes)
        row, column = at
        of_result = plus(times(plus(times(plane, self.row.outs), row), outs), column)
        found = []
        for one in self.extra:
            read = in_all_lanes if one.per == "channel" else loaded
            found.append(one.read(read, {"element": of_result, "channel": group}, lanes))
        return self.result.finished(sums, found)
