# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products of neighbours along a row of taps, which one instruction adds up.

Where channels lie last, all elements that a result pixel reads of a row of the source lie one
behind another: its window. Pairs of them cross from a tap to the next. What stands in a pair beside
an odd last element, or outside of the image, is zero: not a number that is multiplied by zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times
from conv_compiler.passes.direct_parts.moves import lengthened
from conv_compiler.passes.direct_parts.neighbours import Paired
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded
from conv_compiler.passes.direct_parts.runs import Progression, progression
from conv_compiler.passes.direct_parts.window_packing import SIDE, WindowPacking
from conv_compiler.targets.limits import UNROLLED, WRITTEN_OUT_PAIRS

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.lanes import TapRow
    from conv_compiler.passes.direct_parts.runs import Run


class Windows(Paired):
    """Result channels in the lanes, products of two neighbours of a window at once."""

    @cached_property
    def window(self) -> Progression:
        """The taps along a row, in the order in which they read it."""
        (reads,) = self.options.slides[2].window
        return progression(reads)

    @property
    def pairs(self) -> int:
        """Pairs of a window."""
        return -(-self.window.length * self.options.sources // SIDE)

    @property
    def row_taps(self) -> int:
        """A window has its row of taps together."""
        return 1

    @property
    def tap_size(self) -> int:
        """A block's result channels for each element of the pairs of a window."""
        return self.pairs * SIDE * self.options.block

    def packing(self) -> Packing:
        """[block, plane and row taps | pairs, vector | lanes]."""
        options = self.options
        _, result, tap, _ = options.weight_steps
        *_, across = options.taps
        outer = [
            Axis(self.of_group, options.block * result, most=self.last_channel * result),
            Axis(math.prod(options.taps[:-1]), across * tap),
        ]
        inner = [Axis(self.pairs * SIDE, 0), Axis(options.vectors, options.lanes * result)]
        axes = outer, inner, result
        return WindowPacking(options, self.weight, self.multiplied, axes, self.window)

    def source(self, source: Operand) -> Operand:
        """A copy where the source is of another type or order: one channel has none."""
        options, element = self.options, self.multiplied
        if options.source_pixel > 1:
            return super().source(source)
        if ops.element_of(source.tensor) == element:
            return source
        return replace(source, tensor=lengthened(source, element, options.source_rows))

    def spans(self, run: Run) -> dict[int, tuple[int, int]]:
        """The elements of a window, first and behind, that are inside the image, by unit."""
        sources, first = self.options.sources, self.window.first.offset
        found: dict[int, tuple[int, int]] = {}
        for read, units in run.reads:
            for unit in units:
                here = (read.offset - first) * sources
                low, high = found.get(unit, (here, here))
                found[unit] = min(low, here), max(high, here + sources)
        return found

    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """One pair after another; many of them by a loop over those that are inside."""
        options, run, packed = self.options, tap_row.run, tap_row.packed
        size, step, offset = options.vectors, options.slides[2].step, self.window.first.offset
        spans = self.spans(run)

        def of_pair(
            sums: list[ir.Value], pair: ir.Value, elements: Mapping[int, ir.Value]
        ) -> list[ir.Value]:
            sums, row = list(sums), plus(tap_row.weights(0), times(pair, SIDE * options.block))
            factors = [
                self.factor(packed, plus(row, constant(number * options.lanes * SIDE)))
                for number in range(size)
            ]
            for unit, element in elements.items():
                for number, factor in enumerate(factors):
                    place = unit * size + number
                    sums[place] = self.multiply_add(sums[place], element, factor)
            return sums

        def pixel(unit: int) -> ir.Value:
            return tap_row.source(unit * step + offset)

        def one(sums: list[ir.Value], pair: int, units: Sequence[int]) -> list[ir.Value]:
            elements = {}
            for unit in units:
                low, behind = spans[unit]
                halves = [half for half in range(SIDE) if low <= pair * SIDE + half < behind]
                at = plus(pixel(unit), constant(pair * SIDE))
                if len(halves) == SIDE:
                    elements[unit] = self.broadcast(tap_row, at)
                elif halves:
                    elements[unit] = self.lone(tap_row.tensor, at, halves[0])
            return of_pair(sums, constant(pair), elements)

        if self.pairs <= WRITTEN_OUT_PAIRS:
            for pair in range(self.pairs):
                sums = one(sums, pair, list(spans))
            return sums
        for span in sorted(set(spans.values())):
            units = [unit for unit in spans if spans[unit] == span]
            low, high = -(-span[0] // SIDE), span[1] // SIDE
            together = max(n for n in range(1, UNROLLED + 1) if (high - low) % n == 0)

            def some(
                at: list[ir.Value],
                sums: list[ir.Value],
                units: list[int] = units,
                low: int = low,
                together: int = together,
            ) -> list[ir.Value]:
                for number in range(together):
                    pair = plus(times(at[0], together), constant(low + number))
                    to = times(pair, SIDE)
                    read = {unit: self.broadcast(tap_row, plus(pixel(unit), to)) for unit in units}
                    sums = of_pair(sums, pair, read)
                return sums

            if span[0] % SIDE:
                sums = one(sums, low - 1, units)
            sums = loops([(high - low) // together], sums, some)
            if span[1] % SIDE:
                sums = one(sums, high, units)
        return sums

    def lone(self, tensor: ir.Value, at: ir.Value, half: int) -> ir.Value:
        """Half of a pair that lies at an address, beside zero, in all lanes."""
        element = self.product.element
        narrow = ir.IntegerType.get_signless(element.width // SIDE)
        one = loaded(tensor, plus(at, constant(half)), 1)
        bits = vector.BitCastOp(ir.VectorType.get([1], narrow), one).result
        value = arith.ExtUIOp(element, vector.ExtractOp(bits, [], [0]).result).result
        if half:
            count = ir.IntegerAttr.get(element, narrow.width)
            value = arith.ShLIOp(value, arith.ConstantOp(element, count).result).result
        lanes = ir.VectorType.get([self.options.lanes], element)
        return vector.BroadcastOp(lanes, value).result
