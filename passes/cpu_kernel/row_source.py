# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read a row of an operand's tensor in vectors: zeros for its pads, pairs in one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.indices import choice, constant, plus, times
from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand
from conv_compiler.passes.cpu_kernel.prefetch import FIRST_CACHE, ask
from conv_compiler.passes.pair_products import PAIR

# How far behind what is read the caches are asked, where they are. 2 to 4 KiB took 2 to 5 % off a
# kernel of AMX tiles, 1 KiB nothing.
BYTES_AHEAD = 4096


class RowSource:
    """A row of the tensor; `place` is its first index.

    With the tensor's `memory` the caches are asked for what will be read a little later.
    """

    def __init__(
        self,
        operand: PackedOperand,
        first: Mapping[str, ir.Value],
        at: Mapping[int, ir.Value],
        memory: Address | None,
    ) -> None:
        self.operand, self.data, self.memory = operand, operand.data, memory
        self.place = operand.element(first, at)
        # Axes along which each vector has an index of its own.
        data = self.data
        inside = () if data.merged else (data.last, data.transposed)
        self.own = [PAIR in axis or i in inside for i, axis in enumerate(data.index)]

    @property
    def starts_inside(self) -> ir.Value | None:
        """Whether the row is the tensor's, along the axes that all its vectors share; None where
        it cannot be in pads."""
        return self._inside(self.place, [not own for own in self.own])

    def packed(self, shifts: Mapping[int, ir.Value], width: int) -> ir.Value:
        """`width` elements of the copy, from the row's first on by `shifts` along some axes."""
        parts = []
        for partner in range(self.operand.parts):
            index = [
                plus(
                    i, constant(partner * axis.get(PAIR, 0)), *([shifts[n]] if n in shifts else [])
                )
                for n, (i, axis) in enumerate(zip(self.place, self.data.index, strict=True))
            ]
            parts.append(self._loaded(index, width))
        return self.operand.product.pack(parts)

    def _loaded(self, index: Sequence[ir.Value], width: int) -> ir.Value:
        """`width` elements of the tensor from an index on; zeros outside of it."""
        data = self.data
        if self.memory:
            ask(plus(self.memory.of(list(index)), constant(BYTES_AHEAD)), FIRST_CACHE)
        element = ops.element_of(data.value)
        type, zero = ir.VectorType.get([width], element), ops.zero(element)
        # A vector that begins inside is cut off at the end.
        by_test = [own and (axis != data.last or width == 1) for axis, own in enumerate(self.own)]
        inside = self._inside(index, by_test)
        past_end = data.is_cut and (data.low[-1] or data.extents[-1] % width)
        whole = width == 1 or not (data.high[-1] or past_end)
        value, place = data.value, list(index)
        if data.merged:
            *others, group, channel = index
            place = [*others, plus(times(group, data.extents[-1]), channel)]
            value, whole = data.merged, not data.high[-2]
        map = ir.AffineMap.get_minor_identity(len(place), 1)

        def read() -> ir.Value:
            return vector.TransferReadOp(type, value, place, map, zero, [whole]).result

        if inside is None:
            return read()
        return choice(inside, type, read, lambda: vector.BroadcastOp(type, zero).result)

    def _inside(self, index: Sequence[ir.Value], axes: Sequence[bool]) -> ir.Value | None:
        """Whether an index is the tensor's along some axes; None where it cannot be another."""
        data, inside = self.data, None
        for axis, (at, size) in enumerate(zip(index, ops.shape_of(data.value), strict=True)):
            if axes[axis] and (data.low[axis] or data.high[axis]):
                test = arith.CmpIOp(arith.CmpIPredicate.ult, at, constant(size)).result
                inside = test if inside is None else arith.AndIOp(inside, test).result
        return inside
