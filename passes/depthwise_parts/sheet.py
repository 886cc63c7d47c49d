# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a thread of `depthwise_pixels` walks through its strip: source rows once, sums that slide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import both, bounded, linear, loop
from conv_compiler.passes.depthwise_parts.pixels import zeros
from conv_compiler.problem.slides import in_three

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.pixels import Strip
    from conv_compiler.problem.slides import Met

# The sums of a unit of rows: of each phase, of each column.
Sums = list[list[ir.Value]]
# Vectors of a source row, by depth tap and column.
Fetched = dict[tuple[int, int], ir.Value]
# Rows that are fetched before their step, by step and row.
Ahead = dict[int, dict[int, Fetched]]


class Sheet:
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
                bounded(
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
        return bounded(at, rows.size, offset, most * rows.step)

    def fetched(self, top: ir.Value, step: int, span: range, row: int) -> Fetched:
        """The vectors of a source row as they lie in memory, by depth tap and column."""
        strip, kernel = self.strip, self.kernel
        line, _ = self.row_of(top, step, span, row)
        extents = (self.depth.size, self.rows.size, kernel.column.size)
        return {
            (tap, place): strip.fetched(extents, [strip.n, sheet, line, column])
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
            value = kernel.product.prepared(kernel.source, value)
            test = both(in_column, in_depth[tap], self.strip.columns[place][1])
            if test is not None:
                value = arith.SelectOp(test, value, zeros(ir.VectorType(value.type))).result
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
                    sums[at] = kernel.product.multiply_add(source, self.strip.taps[tap], sums[at])
