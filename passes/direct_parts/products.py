# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lanes of a direct kernel that hold result channels of a group: a source element is in all of
them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.passes.cpu_kernel.indices import (
    at_most,
    constant,
    divided,
    less,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.shuffles import part_of
from conv_compiler.passes.direct_parts.lanes import Lanes, TapRow
from conv_compiler.passes.direct_parts.moves import in_type
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded, widened
from conv_compiler.targets.limits import UNROLLED

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand


class Results(Lanes):
    """Result channels of a group in the lanes."""

    # Source channels of one product.
    step_channels = 1

    @property
    def blocks(self) -> int:
        """Register tiles that hold all result channels of a pixel."""
        return self.options.groups * self.of_group

    @property
    def of_group(self) -> int:
        """Register tiles that hold all result channels of a group."""
        return -(-self.options.results // self.options.block)

    @property
    def block_channels(self) -> int:
        """Result channels of a register tile."""
        return min(self.options.block, self.options.results)

    @property
    def last_channel(self) -> int:
        """The first channel of a group's last block, which has no channel behind the group's."""
        return max(0, self.options.results - self.options.block)

    def result_channel(self, block: ir.Value) -> ir.Value:
        """Blocks lie one behind another; a group's last one begins earlier."""
        options = self.options
        if options.results <= options.block or options.results % options.block == 0:
            return super().result_channel(block)
        group = divided(block, self.of_group)
        within = less(block, times(group, self.of_group))
        first = at_most(self.last_channel, times(within, options.block))
        return plus(times(group, options.results), first)

    @property
    def tap_size(self) -> int:
        """A block's result channels for each source channel."""
        return self.options.sources * self.options.block

    def packing(self) -> Packing:
        """[group, block, taps | source, vector | lanes]."""
        return Packing(self.options, self.weight, self.element, *self.axes())

    def axes(self) -> tuple[list[Axis], list[Axis], int]:
        """Of the packed weights the outer axes and the inner ones, and how far lanes are apart."""
        options = self.options
        group, result, tap, source = options.weight_steps
        outer = [
            Axis(options.groups, group),
            Axis(self.of_group, options.block * result, most=self.last_channel * result),
            Axis(math.prod(options.filter), tap),
        ]
        inner = [Axis(options.sources, source), Axis(options.vectors, options.lanes * result)]
        return outer, inner, result

    def source(self, source: Operand) -> Operand:
        """In the type of sums: single elements are read, and each would be widened many times."""
        if source.steps or self.options.source_images:
            return super().source(source)
        return replace(source, tensor=in_type(source.tensor, self.element))

    def source_channel(self, block: ir.Value) -> ir.Value:
        """The first one of the block's group."""
        options = self.options
        if options.groups == 1:
            return constant(0)
        return times(divided(block, self.of_group), options.sources)

    def results(self, sums: list[ir.Value], unit: int) -> list[ir.Value]:
        """The result channels of a pixel, without lanes that hold none."""
        *found, last = super().results(sums, unit)
        return [*found, part_of(last, 0, self.options.tail) if self.options.tail else last]

    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """One source element after another in all lanes.

        Each tap has a loop of its own. Written out one after another, they would share the source
        elements of adjacent taps, and registers do not hold all of these.
        """
        options, run, packed = self.options, tap_row.run, tap_row.packed
        deep, size = self.step_channels, options.vectors
        count, step = options.sources // deep, options.slides[2].step
        together = max(n for n in range(1, UNROLLED + 1) if count % n == 0)

        def moved(offset: int, column: int, shift: ir.Value | None = None) -> ir.Value:
            at = tap_row.source(column + offset)
            return at if shift is None else plus(at, shift)

        def of_tap(
            sums: list[ir.Value],
            pixel: Callable[[int], ir.Value],
            first: ir.Value,
            units: Sequence[int],
        ) -> list[ir.Value]:
            def some(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
                sums = list(sums)
                for number in range(together):
                    here = plus(times(at[0], together * deep), constant(number * deep))
                    row = plus(first, times(here, options.block))
                    factors = [
                        self.factor(packed, plus(row, constant(behind * options.lanes * deep)))
                        for behind in range(size)
                    ]
                    for unit in units:
                        element = self.broadcast(tap_row, plus(pixel(unit * step), here))
                        for number, factor in enumerate(factors):
                            place = unit * size + number
                            sums[place] = self.multiply_add(sums[place], element, factor)
                return sums

            return loops([count // together], sums, some)

        if run.taps is None:
            for read, units in run.reads:
                sums = of_tap(sums, partial(moved, read.offset), tap_row.weights(read.tap), units)
            return sums
        taps, (_, units) = run.taps, run.reads[0]

        def a_tap(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            shift = times(at[0], taps.step.offset * options.source_pixel)
            first = plus(
                tap_row.weights(taps.first.tap), times(at[0], taps.step.tap * self.tap_size)
            )
            pixel = partial(moved, taps.first.offset, shift=shift)
            return of_tap(sums, pixel, first, units)

        return loops([taps.length], sums, a_tap)

    def factor(self, packed: ir.Value, at: ir.Value) -> ir.Value:
        """Packed weights of all lanes."""
        return loaded(packed, at, self.options.lanes)

    def broadcast(self, tap_row: TapRow, at: ir.Value) -> ir.Value:
        """An element of the source in all lanes."""
        operand, element = tap_row.operand, tensor.ExtractOp(tap_row.tensor, [at]).result
        if operand.steps or element.type != self.element:
            one = ir.VectorType.get([1], element.type)
            value = widened(operand.applied(vector.BroadcastOp(one, element).result), self.element)
            element = vector.ExtractOp(value, [], [0]).result
        return vector.BroadcastOp(self.vector, element).result
