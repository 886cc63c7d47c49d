# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products of neighbouring source channels, which one instruction adds up: how the weights
are packed for it, and the product of two neighbours in vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.indices import constant, linearized, loops, plus, times
from conv_compiler.passes.cpu_kernel.products import product_of
from conv_compiler.passes.cpu_kernel.shuffles import riffled
from conv_compiler.passes.direct_parts.moves import channels_last, lengthened
from conv_compiler.passes.direct_parts.packing import Packing, address, loaded, stored
from conv_compiler.passes.direct_parts.products import Results
from conv_compiler.targets.host import PAIR_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.lanes import TapRow
    from conv_compiler.passes.direct_parts.options import DirectOptions


class NeighbourPacking(Packing):
    """[group, block, taps | sources, vector | lanes], `neighbours` adjacent sources in each lane:
    as many as an instruction adds up."""

    def __init__(self, *arguments: Any, neighbours: int) -> None:
        super().__init__(*arguments)
        self.neighbours = neighbours

    def filled(self, piece: ir.Value, source: ir.Value, base: ir.Value) -> ir.Value:
        """A workgroup's part of the packed weights."""
        lanes, (*outside, (extent, step, _), (vectors, apart, _)) = self.options.lanes, self.inner
        side, tail = self.neighbours, self.options.tail
        square = lanes if self.is_transposed else side
        # Vectors of which the last is not full are told apart where the kernel is written.
        numbers = range(vectors if tail else 1)

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (target,) = values
            *around, along, column = at
            first = times(along, square)
            begin = plus(base, address(around, outside))
            row = times(linearized(around, [one.extent for one in outside]), extent)
            for one in numbers:
                number = plus(column, constant(one))
                full = tail if tail and one == vectors - 1 else lanes
                here = plus(begin, times(first, step), times(number, apart))
                if self.is_transposed:
                    rows = self.vectors(source, here, full)
                else:
                    rows = [
                        self.vectors(source, plus(here, constant(i * step)), full)[0]
                        for i in range(side)
                    ]
                for place in range(0, square, side):
                    beside = plus(times(plus(row, first), vectors), times(number, side))
                    to = times(plus(beside, constant(place * vectors)), lanes)
                    for i, value in enumerate(riffled(rows[place : place + side])):
                        target = stored(value, target, [plus(to, constant(i * lanes))])
            return [target]

        counts = [*(one.extent for one in outside), extent // square, 1 if tail else vectors]
        return loops(counts, [piece], some)[0]


class Paired(Results):
    """Result channels of a group in the lanes, products of two adjacent source channels at once."""

    def __init__(self, options: DirectOptions, weight: Operand, element: ir.Type) -> None:
        super().__init__(options, weight, element)
        self.multiplied = ir.Type.parse(PAIR_INSTRUCTIONS[options.instruction].element)
        self.product = product_of(options.instruction, self.vector)
        self.step_channels = self.product.factors

    def packing(self) -> Packing:
        """[group, block, taps | sources, vector | lanes], two sources in each lane."""
        return NeighbourPacking(
            self.options,
            self.weight,
            self.multiplied,
            *self.axes(),
            neighbours=self.product.factors,
        )

    def source(self, source: Operand) -> Operand:
        """A copy where the source is of another type or order, or behind an op."""
        options, element = self.options, self.multiplied
        if options.source_images:
            return replace(source, tensor=channels_last(source, element, options.source_rows))
        if ops.element_of(source.tensor) != element:
            return replace(source, tensor=lengthened(source, element, options.source_rows))
        return source

    def factor(self, packed: ir.Value, at: ir.Value) -> ir.Value:
        """Packed weights of all lanes."""
        return self._joined(loaded(packed, at, self.product.factors * self.options.lanes))

    def broadcast(self, tap_row: TapRow, at: ir.Value) -> ir.Value:
        """Adjacent elements of the source, in all lanes."""
        both = self._joined(loaded(tap_row.tensor, at, self.product.factors))
        one = vector.ExtractOp(both, [], [0]).result
        lanes = ir.VectorType.get([self.options.lanes], self.product.element)
        return vector.BroadcastOp(lanes, one).result

    def multiply_add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """total + both products of a lane."""
        return self.product.add(total, a, b)

    def _joined(self, value: ir.Value) -> ir.Value:
        """Neighbours as one element."""
        count = ir.VectorType(value.type).shape[0] // self.product.factors
        type = ir.VectorType.get([count], self.product.element)
        return vector.BitCastOp(type, value).result
