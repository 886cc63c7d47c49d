# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread of the kernel `depthwise_pixels`: a strip of result pixels, sums in registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, vector
from iree.compiler.dialects import math as math_dialect

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    inside,
    linear,
    loop,
)
from conv_compiler.problem.slides import in_three

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.depthwise_parts.options import PixelOptions
    from conv_compiler.problem.slides import Met, Slide

# The sums of a unit of rows: of each phase, of each column.
Sums = list[list[ir.Value]]
# Vectors of a source row, by depth tap and column.
Fetched = dict[tuple[int, int], ir.Value]
# Rows that are fetched before their step, by step and row.
Ahead = dict[int, dict[int, Fetched]]
# Where a result pixel lies in its thread's strip: depth, row, column.
Place = tuple[int, ir.Value | int, int]


class Pixels:
    """What the threads of a kernel have in common."""

    def __init__(
        self,
        options: PixelOptions,
        slides: tuple[Slide, Slide, Slide],
        operands: tuple[Operand, Operand],
        result: Result,
        accumulator: ir.Type,
    ) -> None:
        self.options, self.result, self.accumulator = options, result, accumulator
        self.depth, self.row, self.column = slides
        self.source, self.weight = operands
        self.tensors = [one.flat() for one in operands]
        self.extra = result.extra()
        self.summed = ir.VectorType.get([options.vector], accumulator)
        self.is_integer = isinstance(accumulator, ir.IntegerType)
        self.taps = math.prod(options.filter)
        # Strips that the threads of all workgroups have, down and across; some may lie outside.
        self.segments = _rounded_up(-(-self.row.units // options.rows), options.down)
        self.across = _rounded_up(-(-self.column.units // options.columns), options.across)
        self.reach = self.column.reach(options.columns)

    def weights(self, groups: ir.Value) -> list[ir.Value]:
        """The filters of a thread's groups, one vector a tap. They lie one behind the other."""
        count, first = self.options.vector, linear(groups, self.taps)
        loaded = [
            self.load(self.tensors[1], linear(first, 1, piece * count))
            for piece in range(self.taps)
        ]
        if count == 1:
            return [self.multiplied(self.weight, value) for value in loaded]
        found = []
        for tap in range(self.taps):
            places = [divmod(group * self.taps + tap, count) for group in range(count)]
            elements = [vector.ExtractOp(loaded[piece], [], [at]).result for piece, at in places]
            gathered = vector.FromElementsOp(loaded[0].type, elements).result
            found.append(self.multiplied(self.weight, gathered))
        return found

    def multiplied(self, operand: Operand, value: ir.Value) -> ir.Value:
        """Elements of an operand after its ops, in the type of the sums."""
        value = operand.applied(value)
        if ir.VectorType(value.type).element_type == self.accumulator:
            return value
        return (arith.ExtSIOp if self.is_integer else arith.ExtFOp)(self.summed, value).result

    def multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a * b."""
        if self.is_integer:
            return arith.AddIOp(c, arith.MulIOp(a, b).result).result
        return math_dialect.FmaOp(a, b, c).result

    def load(self, tensor: ir.Value, at: ir.Value) -> ir.Value:
        """The vector at an element's address."""
        element = ops.element_of(tensor)
        type = ir.VectorType.get([self.options.vector], element)
        at = arith.IndexCastOp(ir.IndexType.get(), at).result
        map = ir.AffineMap.get_identity(1)
        return vector.TransferReadOp(type, tensor, [at], map, ops.zero(element), [True]).result

    def zeros(self) -> ir.Value:
        """No sum."""
        element = self.accumulator
        zero = ir.IntegerAttr.get(element, 0) if self.is_integer else ir.FloatAttr.get(element, 0.0)
        splat = ir.DenseElementsAttr.get_splat(self.summed, zero)
        return arith.ConstantOp(self.summed, splat).result


class Strip:
    """The strip of one thread: image `n`, unit of depth, first units of rows and columns, groups.

    `real` tells whether it is one; None where it is known to be. `write` puts a vector in its place
    of the thread's piece of the result.
    """

    def __init__(
        self,
        kernel: Pixels,
        at: Sequence[ir.Value],
        groups: ir.Value,
        real: ir.Value | None,
        write: Callable[[ir.Value, ir.Value, Place], ir.Value],
    ) -> None:
        self.kernel, self.groups, self.real, self.write = kernel, groups, real, write
        self.n, self.deep, self.top, self.left = at
        self.weights = kernel.weights(groups)
        column, options = kernel.column, kernel.options
        span = (kernel.across - 1) * options.columns * column.step
        self.columns = {
            step: self.bounded(linear(self.left, column.step, step), column.size, step, span)
            for step in kernel.reach
        }

    def bounded(
        self, at: ir.Value, size: int, first: int, span: int
    ) -> tuple[ir.Value, ir.Value | None]:
        """An index that runs from `first` over `span`, kept inside an axis, and whether it is."""
        if first >= 0 and first + span < size:
            return at, None
        test = below(at, size)
        return inside(at, test), test

    def computed(self, piece: ir.Value) -> ir.Value:
        """The piece with all pixels of the strip."""
        for phase in range(self.kernel.depth.phases):
            piece = _Sheet(self, phase).computed(piece)
        return piece

    def address(self, extents: Sequence[int], at: Sequence[ir.Value]) -> ir.Value:
        """The address of the first group of a pixel (n, depth, row, column)."""
        found, *others = at
        for extent, index in zip(extents, others, strict=True):
            found = linear(found, extent, index)
        return linear(found, self.kernel.options.groups, self.groups)

    def finish(self, piece: ir.Value, sums: ir.Value, place: Place) -> ir.Value:
        """The piece with a pixel's sums, where there is such a pixel."""
        kernel = self.kernel
        slides = (kernel.depth, kernel.row, kernel.column)
        firsts = (self.deep, self.top, self.left)
        pixels = [
            linear(first, slide.phases, index)
            for first, slide, index in zip(firsts, slides, place, strict=True)
        ]
        tests = [
            below(pixel, slide.outs) if units * slide.phases > slide.outs else None
            for pixel, slide, units in zip(
                pixels,
                slides,
                (
                    kernel.depth.units,
                    kernel.segments * kernel.options.rows,
                    kernel.across * kernel.options.columns,
                ),
                strict=True,
            )
        ]
        extents = [slide.outs for slide in slides]

        def put() -> ir.Value:
            extra = [
                kernel.load(tensor, self.address(extents, [self.n, *pixels]))
                for tensor in kernel.extra
            ]
            return self.write(piece, kernel.result.finished(sums, extra), place)

        test = both(self.real, *tests)
        if test is None:
            return put()
        written = scf.IfOp(test, [piece.type], has_else=True)
        with ir.InsertionPoint(written.then_block):
            scf.YieldOp([put()])
        with ir.InsertionPoint(written.else_block):
            scf.YieldOp([piece])
        result: ir.Value = written.results[0]
        return result


class _Sheet:
    """One phase of depth of a strip, which rows of the source walk through once.

    Source row i * step + t adds to the units i + lag of result rows. So `later` units are begun
    before the first of them is finished. Steps 0 to `later` - 1 begin units and finish none, as
    many at the end finish units and begin none; the steps between may be a loop.
    """

    def __init__(self, strip: Strip, phase: int) -> None:
        self.strip, self.kernel, self.phase = strip, strip.kernel, phase
        self.rows, self.options = strip.kernel.row, strip.kernel.options
        self.low, self.high = self.rows.lags
        self.later = self.rows.later
        self.depth = strip.kernel.depth
        self.sheets = [
            (
                read.tap,
                strip.bounded(
                    linear(strip.deep, self.depth.step, read.offset),
                    self.depth.size,
                    read.offset,
                    (self.depth.units - 1) * self.depth.step,
                ),
            )
            for read in self.depth.window[phase]
        ]

    def computed(self, piece: ir.Value) -> ir.Value:
        """The piece with all pixels of this phase."""
        rows = self.options.rows
        open: dict[int, Sums] = {}
        steady = range(self.later, rows)
        looped = len(steady) > self.options.unroll
        early: Ahead = {}
        for step in range(self.later) if looped else range(rows):
            piece = self.step(step, range(step, step + 1), open, piece)
        if looped:
            piece, early = self.looped(steady, open, piece)
        for step in range(rows, rows + self.later):
            span = range(step, step + 1)
            piece = self.step(step, span, open, piece, early=early.get(step, {}))
        return piece

    def looped(
        self, steady: range, open: dict[int, Sums], piece: ir.Value
    ) -> tuple[ir.Value, Ahead]:
        """The steps that each finish a unit and begin one, some an iteration.

        The units that are open lie as if the first of these steps were always the next one. An
        iteration multiplies what the one before it fetched, the last one fetches for those behind.
        """
        unroll, top = self.options.unroll, self.strip.top
        first, sheets = steady.start, len(self.sheets) * len(self.strip.columns)
        met = [one.row for one in self.rows.met()] if sheets else []
        rows = [(step, row) for step in range(first, first + unroll) for row in sorted(set(met))]

        def fetched(top: ir.Value, by: int) -> list[ir.Value]:
            """The rows of an iteration, from a strip's top; it stands for `by` more steps."""
            found = []
            for step, row in rows:
                span = range(step, step + by + 1)
                found += list(self.fetched(top, step, span, row).values())
            return found

        def ahead(values: list[ir.Value], step: int) -> Ahead:
            """Values in order as those rows, if the first of them is of `step`."""
            keys = [(tap, place) for tap, _ in self.sheets for place in self.strip.columns]
            found: Ahead = {}
            for at, (of, row) in enumerate(rows):
                part = values[at * sheets : (at + 1) * sheets]
                found.setdefault(of - first + step, {})[row] = dict(zip(keys, part, strict=True))
            return found

        count_of_rows = len(rows) * sheets

        def an_iteration(count: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            piece, early = values[0], ahead(values[1 : 1 + count_of_rows], first)
            inner = self.unpacked(values[1 + count_of_rows :], first)
            moved = linear(count, unroll)
            later = fetched(linear(linear(top, 1, moved), 1, unroll), len(steady))
            for step in range(first, first + unroll):
                span = range(step, steady.stop - unroll + step - first + 1)
                piece = self.step(step, span, inner, piece, moved, early[step] if rows else {})
            lowest = first + unroll - self.later
            left = {at - unroll: inner[at] for at in inner if at >= lowest}
            return [piece, *later, *self.packed(left)]

        values = [piece, *fetched(top, 0), *self.packed(open)]
        piece, *rest = loop(len(steady) // unroll, values, an_iteration)
        open.clear()
        open.update(self.unpacked(rest[count_of_rows:], steady.stop))
        return piece, ahead(rest[:count_of_rows], steady.stop)

    def packed(self, open: Mapping[int, Sums]) -> list[ir.Value]:
        return [value for unit in sorted(open) for row in open[unit] for value in row]

    def unpacked(self, values: Sequence[ir.Value], step: int) -> dict[int, Sums]:
        """The units that are open before a step."""
        column, left = self.kernel.column, list(values)
        width, found = self.options.columns * column.phases, dict[int, Sums]()
        for unit in range(step - self.later, step):
            found[unit] = [[left.pop(0) for _ in range(width)] for _ in range(self.rows.phases)]
        return found

    def begun(self) -> Sums:
        width = self.options.columns * self.kernel.column.phases
        return [[self.kernel.zeros() for _ in range(width)] for _ in range(self.rows.phases)]

    def met(self, step: int) -> list[Met]:
        """The taps that meet a source row of a step, of units that the strip has."""
        units = range(max(0, step - self.later), min(self.options.rows - 1, step) + 1)
        return [one for one in self.rows.met() if step - self.high + one.lag in units]

    def step(
        self,
        step: int,
        span: range,
        open: dict[int, Sums],
        piece: ir.Value,
        moved: ir.Value | None = None,
        early: Mapping[int, Fetched] = MappingProxyType({}),
    ) -> ir.Value:
        """One step's source rows multiplied, and the unit written that this finishes.

        `span` has the steps that this one stands for, of which a loop's iteration is `moved` away.
        `early` has rows that are fetched already.
        """
        strip = self.strip
        if step < self.options.rows:
            open[step] = self.begun()
        top = strip.top if moved is None else linear(strip.top, 1, moved)
        loaded: dict[int, Fetched] = {}
        for one in self.met(step):
            if one.row not in loaded:
                found = early.get(one.row) or self.fetched(top, step, span, one.row)
                loaded[one.row] = self.source_row(found, top, step, span, one.row)
            sums = open[step - self.high + one.lag][one.phase]
            for tap, _ in self.sheets:
                self.add(sums, loaded[one.row], tap, one.tap)
        done = step - self.later
        if done < 0:
            return piece
        for phase, row in enumerate(open.pop(done)):
            at: ir.Value | int = done * self.rows.phases + phase
            if moved is not None:
                at = linear(moved, self.rows.phases, at)
            for column, sums_of_pixel in enumerate(row):
                piece = strip.finish(piece, sums_of_pixel, (self.phase, at, column))
        return piece

    def row_of(
        self, top: ir.Value, step: int, span: range, row: int
    ) -> tuple[ir.Value, ir.Value | None]:
        """A source row's index, kept inside the source, and whether it is inside."""
        rows, kernel = self.rows, self.kernel
        offset = (step - self.high) * rows.step + row
        most = (kernel.segments - 1) * self.options.rows + span[-1] - span[0]
        at = linear(top, rows.step, offset)
        return self.strip.bounded(at, rows.size, offset, most * rows.step)

    def fetched(self, top: ir.Value, step: int, span: range, row: int) -> Fetched:
        """The vectors of a source row as they lie in memory, by depth tap and column."""
        strip, kernel = self.strip, self.kernel
        line, _ = self.row_of(top, step, span, row)
        extents = (self.depth.size, self.rows.size, kernel.column.size)
        return {
            (tap, place): kernel.load(
                kernel.tensors[0], strip.address(extents, [strip.n, sheet, line, column])
            )
            for tap, (sheet, _) in self.sheets
            for place, (column, _) in strip.columns.items()
        }

    def source_row(
        self, found: Fetched, top: ir.Value, step: int, span: range, row: int
    ) -> Fetched:
        """What was fetched of a source row as it is multiplied: zero outside of the source."""
        kernel = self.kernel
        _, in_column = self.row_of(top, step, span, row)
        in_depth = {tap: test for tap, (_, test) in self.sheets}
        ready = {}
        for (tap, place), value in found.items():
            value = kernel.multiplied(kernel.source, value)
            test = both(in_column, in_depth[tap], self.strip.columns[place][1])
            if test is not None:
                value = arith.SelectOp(test, value, kernel.zeros()).result
            ready[tap, place] = value
        return ready

    def add(
        self, sums: list[ir.Value], loaded: Mapping[tuple[int, int], ir.Value], z: int, y: int
    ) -> None:
        """The products of a source row with a row of the filter, added to a row of sums."""
        kernel, column = self.kernel, self.kernel.column
        _, filter_rows, filter_columns = in_three(self.options.filter, 1)
        for unit in range(self.options.columns):
            for phase, reads in enumerate(column.window):
                at = unit * column.phases + phase
                for read in reads:
                    tap = (z * filter_rows + y) * filter_columns + read.tap
                    source = loaded[z, unit * column.step + read.offset]
                    sums[at] = kernel.multiply_add(source, self.strip.weights[tap], sums[at])


def _rounded_up(value: int, to: int) -> int:
    return -(-value // to) * to


def threads_place(options: PixelOptions, thread: ir.Value) -> list[ir.Value]:
    """Where a thread lies in its workgroup: image, strip down, strip across, lane."""
    return cut(thread, (options.images, options.down, options.across, options.lanes))
