# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of windows (`windows.py`): pairs of the elements that a row of taps multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.indices import constant, divided, loops, plus, times
from conv_compiler.passes.cpu_kernel.shuffles import riffled
from conv_compiler.passes.direct_parts.packing import Packing, stored

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.options import DirectOptions
    from conv_compiler.passes.direct_parts.packing import Axis
    from conv_compiler.passes.direct_parts.runs import Progression

# Elements of a pair.
SIDE = 2


class WindowPacking(Packing):
    """[block, plane and row taps | pairs, vector | lanes], two adjacent elements of a window in
    each lane."""

    def __init__(
        self,
        options: DirectOptions,
        weight: Operand,
        element: ir.Type,
        axes: tuple[list[Axis], list[Axis], int],
        taps: Progression,
    ) -> None:
        super().__init__(options, weight, element, *axes)
        self.sizes, self.taps = options, taps

    @property
    def is_transposed(self) -> bool:
        """Never: weights of a window are few."""
        return False

    def filled(self, piece: ir.Value, source: ir.Value, base: ir.Value) -> ir.Value:
        """A workgroup's part of the packed weights."""
        lanes, tail, (vectors, apart, _) = self.options.lanes, self.options.tail, self.inner[-1]
        window = self.taps.length * self.sizes.sources
        zero = vector.BroadcastOp(
            ir.VectorType.get([lanes], self.element), ops.zero(self.element)
        ).result
        # Vectors of which the last is not full are told apart where the kernel is written.
        numbers = range(vectors if tail else 1)

        def pair(target: ir.Value, at: ir.Value, vector_at: ir.Value, *, is_odd: bool) -> ir.Value:
            for one in numbers:
                number = plus(vector_at, constant(one))
                full = tail if tail and one == vectors - 1 else lanes
                first = plus(base, times(number, apart))
                found = [
                    self.vectors(source, plus(first, self._address(at, half)), full)[0]
                    for half in range(1 if is_odd else SIDE)
                ]
                rows = [*found, zero] if is_odd else found
                to = times(plus(times(at, vectors), number), SIDE * lanes)
                for half, value in enumerate(riffled(rows)):
                    target = stored(value, target, [plus(to, constant(half * lanes))])
            return target

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [pair(values[0], at[0], at[1], is_odd=False)]

        def last(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [pair(values[0], constant(window // SIDE), at[0], is_odd=True)]

        count = 1 if tail else vectors
        (piece,) = loops([window // SIDE, count], [piece], some)
        return loops([count], [piece], last)[0] if window % SIDE else piece

    def _address(self, pair: ir.Value, half: int) -> ir.Value:
        """Where an element of a pair lies, from the weights of the plane's and the row's tap."""
        _, _, tap, source = self.sizes.weight_steps
        number = plus(times(pair, SIDE), constant(half))
        read, sources = divided(number, self.sizes.sources), constant(self.sizes.sources)
        channel = arith.RemUIOp(number, sources).result
        tap_number = plus(constant(self.taps.first.tap), times(read, self.taps.step.tap))
        return plus(times(tap_number, tap), times(channel, source))
