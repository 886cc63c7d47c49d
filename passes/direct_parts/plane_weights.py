# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of kernels with the pixels of a row in the lanes: each in all lanes, from registers
or packed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.passes.cpu_kernel.indices import constant, plus, times
from conv_compiler.passes.direct_parts.neighbours import NeighbourPacking
from conv_compiler.passes.direct_parts.packing import (
    Axis,
    Packing,
    in_all_lanes,
    loaded,
    widened,
)
from conv_compiler.targets.host import PAIR_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.products import Product
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.problem.plane_sizes import PlaneSizes
    from conv_compiler.problem.slides import Read


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Weights that lie one behind another: as many as a block has result channels."""

    lanes: int
    tail: int = 0


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
        options, element = self.options, self.sums.element_type
        group, result, tap, source = options.weight_steps
        outer = [
            Axis(options.groups, group),
            Axis(options.results // options.block, options.block * result),
        ]
        inner = [Axis(options.taps, tap), Axis(options.sources, source), Axis(1, 0)]
        rows = _Rows(lanes=options.block)
        if row := PAIR_INSTRUCTIONS.get(options.instruction):
            multiplied = ir.Type.parse(row.element)
            return NeighbourPacking(
                rows, self.weight, multiplied, outer, inner, result, neighbours=options.factors
            )
        return Packing(rows, self.weight, element, outer, inner, result)

    def held(self, group: ir.Value) -> dict[int, ir.Value]:
        """The weight of each tap of a depthwise group, in all lanes."""
        step, _, tap_step, _ = self.options.weight_steps
        found = {}
        for row in self.options.reads(0):
            for column in self.options.reads(1):
                tap = self.tap(row, column)
                at = plus(times(group, step), constant(tap * tap_step))
                value = self.weight.applied(in_all_lanes(self.packed, at, 1))
                found[tap] = self.everywhere(widened(value, self.sums.element_type))
        return found

    def base(self, group: ir.Value, channel: ir.Value) -> ir.Value:
        """Where the weights of a block begin, of the group's result channel that is its first."""
        options = self.options
        size = options.taps * options.sources
        return plus(times(group, options.results * size), times(channel, size))

    def of_tap(self, base: ir.Value, step: ir.Value, tap: int) -> list[ir.Value]:
        """The weights of a block for a step of a tap, each in all lanes."""
        count = self.options.factors
        here = plus(base, times(step, self.step_apart), constant(tap * self.tap_apart))
        found = []
        for row in range(self.options.block):
            weight = loaded(self.packed, plus(here, constant(row * count)), count)
            if count > 1:
                one = ir.VectorType.get([1], self.product.element)
                weight = vector.BitCastOp(one, weight).result
            found.append(self.everywhere(weight))
        return found

    def tap(self, row: Read, column: Read) -> int:
        """The number of a tap in the filter."""
        return row.tap * self.options.filter[-1] + column.tap

    def everywhere(self, weight: ir.Value) -> ir.Value:
        """A vector of one element, in all lanes."""
        scalar = vector.ExtractOp(weight, [], [0]).result
        lanes = ir.VectorType.get([self.options.lanes], scalar.type)
        return vector.BroadcastOp(lanes, scalar).result
