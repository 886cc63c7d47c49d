# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lanes of a direct kernel that hold the source channels of a group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times
from conv_compiler.passes.direct_parts.lanes import Lanes, TapRow
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded

if TYPE_CHECKING:
    pass


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
        outer = [Axis(options.groups, group), Axis(math.prod(options.filter), tap)]
        inner = [
            Axis(options.sources // options.lanes, options.lanes * source),
            Axis(options.results, result),
        ]
        return Packing(options, self.weight, self.element, outer, inner, source)

    def source_channel(self, block: ir.Value) -> ir.Value:
        """The first one of the group."""
        return times(block, self.options.sources)

    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """Vectors of source channels one after another."""
        options, run, packed = self.options, tap_row.run, tap_row.packed
        step = options.slides[2].step

        def some(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            sums = list(sums)
            for read, units in run.reads:
                first = plus(
                    tap_row.weights(read.tap), times(at[0], options.results * options.lanes)
                )
                factors = [
                    loaded(packed, plus(first, constant(result * options.lanes)), options.lanes)
                    for result in range(options.results)
                ]
                for unit in units:
                    pixel = tap_row.source(unit * step + read.offset)
                    address = plus(pixel, times(at[0], options.lanes))
                    values = self.elements(tap_row, address)
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
