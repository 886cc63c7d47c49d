# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lies in the lanes of a direct kernel, one class a way, and how products are added to sums.

With `results` a source element is in all lanes, and the weights are those of a group's result
channels. With `groups` of one channel both are of as many groups. With `sources` both are of a
group's source channels, and the lanes are added up at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.passes.cpu_kernel.indices import constant, divided, loops, plus, times
from conv_compiler.passes.cpu_kernel.shuffles import part_of
from conv_compiler.passes.direct_parts.lanes import Lanes
from conv_compiler.passes.direct_parts.moves import in_type
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded, widened
from conv_compiler.targets.limits import UNROLLED

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.runs import Run


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
            (options.groups, group),
            (self.of_group, options.block * result),
            (math.prod(options.filter), tap),
        ]
        inner = [(options.sources, source), (options.vectors, options.lanes * result)]
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

    def add(
        self,
        sums: list[ir.Value],
        source: Callable[[int], ir.Value],
        weights: Callable[[int], ir.Value],
        operand: tuple[Operand, ir.Value, ir.Value],
        run: Run,
    ) -> list[ir.Value]:
        """One source element after another in all lanes.

        Each tap has a loop of its own. Written out one after another, they would share the source
        elements of adjacent taps, and registers do not hold all of these.
        """
        options, (steps, tensor_, packed) = self.options, operand
        deep, size = self.step_channels, options.vectors
        count, step = options.sources // deep, options.slides[2].step
        together = max(n for n in range(1, UNROLLED + 1) if count % n == 0)

        def moved(offset: int, column: int, shift: ir.Value | None = None) -> ir.Value:
            at = source(column + offset)
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
                        element = self.broadcast(steps, tensor_, plus(pixel(unit * step), here))
                        for number, factor in enumerate(factors):
                            place = unit * size + number
                            sums[place] = self.multiply_add(sums[place], element, factor)
                return sums

            return loops([count // together], sums, some)

        if run.taps is None:
            for read, units in run.reads:
                sums = of_tap(sums, partial(moved, read.offset), weights(read.tap), units)
            return sums
        taps, (_, units) = run.taps, run.reads[0]

        def a_tap(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            shift = times(at[0], taps.step.offset * options.source_pixel)
            first = plus(weights(taps.first.tap), times(at[0], taps.step.tap * self.tap_size))
            pixel = partial(moved, taps.first.offset, shift=shift)
            return of_tap(sums, pixel, first, units)

        return loops([taps.length], sums, a_tap)

    def factor(self, packed: ir.Value, at: ir.Value) -> ir.Value:
        """Packed weights of all lanes."""
        return loaded(packed, at, self.options.lanes)

    def broadcast(self, operand: Operand, source: ir.Value, at: ir.Value) -> ir.Value:
        """An element of the source in all lanes."""
        element = tensor.ExtractOp(source, [at]).result
        if operand.steps or element.type != self.element:
            one = ir.VectorType.get([1], element.type)
            value = widened(operand.applied(vector.BroadcastOp(one, element).result), self.element)
            element = vector.ExtractOp(value, [], [0]).result
        return vector.BroadcastOp(self.vector, element).result


class Groups(Lanes):
    """Groups of one source and one result channel in the lanes."""

    outer_blocks = False

    @property
    def blocks(self) -> int:
        """Register tiles that hold all groups."""
        return self.options.groups // self.options.block

    @property
    def block_channels(self) -> int:
        """Groups of a register tile."""
        return self.options.block

    @property
    def tap_size(self) -> int:
        """A block's groups."""
        return self.options.block

    def packing(self) -> Packing:
        """[block | taps, vector | lanes]."""
        options = self.options
        group, _, tap, _ = options.weight_steps
        outer = [(self.blocks, options.block * group)]
        inner = [(math.prod(options.filter), tap), (options.vectors, options.lanes * group)]
        return Packing(options, self.weight, self.element, outer, inner, group)

    def source_channel(self, block: ir.Value) -> ir.Value:
        """The block's first group."""
        return times(block, self.options.block)

    def add(
        self,
        sums: list[ir.Value],
        source: Callable[[int], ir.Value],
        weights: Callable[[int], ir.Value],
        operand: tuple[Operand, ir.Value, ir.Value],
        run: Run,
    ) -> list[ir.Value]:
        """Each vector of the source once, for all taps that it meets."""
        options, (steps, tensor_, packed) = self.options, operand
        sums, step = list(sums), options.slides[2].step
        met: dict[int, list[tuple[int, int]]] = {}
        for read, units in run.reads:
            for unit in units:
                met.setdefault(unit * step + read.offset, []).append((unit, read.tap))
        for number in range(options.vectors):
            shift = constant(number * options.lanes)
            factors = {
                read.tap: loaded(packed, plus(weights(read.tap), shift), options.lanes)
                for read, _ in run.reads
            }
            for column in sorted(met):
                values = self.elements(steps, tensor_, plus(source(column), shift))
                for unit, tap in met[column]:
                    place = unit * options.vectors + number
                    sums[place] = self.multiply_add(sums[place], values, factors[tap])
        return sums


class Sources(Lanes):
    """Source channels of a group in the lanes; `vectors` counts the result channels of a group."""

    @property
    def blocks(self) -> int:
        """One a group."""
        return self.options.groups

    @property
    def block_channels(self) -> int:
        """The result channels of a group."""
        return self.options.results

    @property
    def tap_size(self) -> int:
        """The weights of a group for a tap."""
        return self.options.sources * self.options.results

    def packing(self) -> Packing:
        """[group, taps | vector of sources, result | lanes]."""
        options = self.options
        group, result, tap, source = options.weight_steps
        outer = [(options.groups, group), (math.prod(options.filter), tap)]
        inner = [
            (options.sources // options.lanes, options.lanes * source),
            (options.results, result),
        ]
        return Packing(options, self.weight, self.element, outer, inner, source)

    def source_channel(self, block: ir.Value) -> ir.Value:
        """The first one of the group."""
        return times(block, self.options.sources)

    def add(
        self,
        sums: list[ir.Value],
        source: Callable[[int], ir.Value],
        weights: Callable[[int], ir.Value],
        operand: tuple[Operand, ir.Value, ir.Value],
        run: Run,
    ) -> list[ir.Value]:
        """Vectors of source channels one after another."""
        options, (steps, tensor_, packed) = self.options, operand
        step = options.slides[2].step

        def some(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            sums = list(sums)
            for read, units in run.reads:
                first = plus(weights(read.tap), times(at[0], options.results * options.lanes))
                factors = [
                    loaded(packed, plus(first, constant(result * options.lanes)), options.lanes)
                    for result in range(options.results)
                ]
                for unit in units:
                    pixel = source(unit * step + read.offset)
                    address = plus(pixel, times(at[0], options.lanes))
                    values = self.elements(steps, tensor_, address)
                    for result, factor in enumerate(factors):
                        place = unit * options.vectors + result
                        sums[place] = self.multiply_add(sums[place], values, factor)
            return sums

        return loops([options.sources // options.lanes], sums, some)

    def results(self, sums: list[ir.Value], unit: int) -> list[ir.Value]:
        """The lanes added up: one vector of the result channels."""
        kind = ir.Attribute.parse("#vector.kind<add>")
        elements: Sequence[ir.Value] = [
            vector.ReductionOp(self.element, kind, one).result
            for one in super().results(sums, unit)
        ]
        type = ir.VectorType.get([self.options.results], self.element)
        return [vector.FromElementsOp(type, elements).result]
