# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of kernels with the pixels of a row in the lanes: each in all lanes, from registers
or packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.passes.cpu_kernel.indices import constant, plus, times
from conv_compiler.passes.direct_parts.block_weights import (
    factor_in_all_lanes,
    in_lanes,
    packing_of_blocks,
)
from conv_compiler.passes.direct_parts.packing import Axis, Packing, in_all_lanes, widened

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.products import Product
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.problem.plane_sizes import PlaneSizes
    from conv_compiler.problem.slides import Read


class PlaneWeights:
    """The weights of one problem."""

    def __init__(
        self, options: PlaneSizes, weight: Operand, sums: ir.VectorType, product: Product
    ) -> None:
        self.options, self.weight, self.sums, self.product = options, weight, sums, product
        # Where the products of a tap's first block lie, and those of a step behind them.
        self.step_apart = options.block * options.factors
        self.tap_apart = options.sources * options.block
        self.packed = weight.flat() if options.is_depthwise else self.packing().region()

    def packing(self) -> Packing:
        """[group, block | tap, step, row], the source channels of a step together."""
        options, (_, _, tap, _) = self.options, self.options.weight_steps
        taps = [Axis(options.taps, tap)]
        return packing_of_blocks(
            options, options.block, options.instruction, self.weight, self.sums.element_type, taps
        )

    def held(self, group: ir.Value) -> dict[int, ir.Value]:
        """The weight of each tap of a depthwise group, in all lanes."""
        step, _, tap_step, _ = self.options.weight_steps
        found = {}
        for row in self.options.reads(0):
            for column in self.options.reads(1):
                tap = self.tap(row, column)
                at = plus(times(group, step), constant(tap * tap_step))
                value = self.weight.applied(in_all_lanes(self.packed, at, 1))
                found[tap] = in_lanes(widened(value, self.sums.element_type), self.options.lanes)
        return found

    def base(self, group: ir.Value, channel: ir.Value) -> ir.Value:
        """Where the weights of a block begin, of the group's result channel that is its first."""
        options = self.options
        size = options.taps * options.sources
        return plus(times(group, options.results * size), times(channel, size))

    def of_tap(self, base: ir.Value, step: ir.Value, tap: int) -> list[ir.Value]:
        """The weights of a block for a step of a tap, each in all lanes."""
        options, count = self.options, self.options.factors
        here = plus(base, times(step, self.step_apart), constant(tap * self.tap_apart))
        return [
            factor_in_all_lanes(
                self.packed, plus(here, constant(row * count)), self.product, options.lanes
            )
            for row in range(options.block)
        ]

    def tap(self, row: Read, column: Read) -> int:
        """The number of a tap in the filter."""
        return row.tap * self.options.filter[-1] + column.tap
