# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lanes of a direct kernel that hold groups of one source and one result channel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.passes.cpu_kernel.indices import at_most, constant, plus
from conv_compiler.passes.direct_parts.lanes import Lanes, TapRow
from conv_compiler.passes.direct_parts.packing import Axis, Packing, loaded

if TYPE_CHECKING:
    pass


class Groups(Lanes):
    """Groups of one source and one result channel in the lanes."""

    @property
    def blocks(self) -> int:
        """Register tiles that hold all groups."""
        return -(-self.options.groups // self.options.block)

    @property
    def last_channel(self) -> int:
        """The first group of the last block, which has no group behind the last one."""
        return self.options.groups - self.options.block

    def result_channel(self, block: ir.Value) -> ir.Value:
        """Blocks lie one behind another; the last one begins earlier."""
        first = super().result_channel(block)
        return (
            at_most(self.last_channel, first) if self.options.groups % self.options.block else first
        )

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
        outer = [Axis(self.blocks, options.block * group, most=self.last_channel * group)]
        inner = [
            Axis(math.prod(options.filter), tap),
            Axis(options.vectors, options.lanes * group),
        ]
        return Packing(options, self.weight, self.element, outer, inner, group)

    def source_channel(self, block: ir.Value) -> ir.Value:
        """The block's first group."""
        return self.result_channel(block)

    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """Each vector of the source once, for all taps that it meets."""
        options, run, packed = self.options, tap_row.run, tap_row.packed
        sums, step = list(sums), options.slides[2].step
        met: dict[int, list[tuple[int, int]]] = {}
        for read, units in run.reads:
            for unit in units:
                met.setdefault(unit * step + read.offset, []).append((unit, read.tap))
        for number in range(options.vectors):
            shift = constant(number * options.lanes)
            factors = {
                read.tap: loaded(packed, plus(tap_row.weights(read.tap), shift), options.lanes)
                for read, _ in run.reads
            }
            for column in sorted(met):
                values = self.elements(tap_row, plus(tap_row.source(column), shift))
                for unit, tap in met[column]:
                    place = unit * options.vectors + number
                    sums[place] = self.multiply_add(sums[place], values, factors[tap])
        return sums
