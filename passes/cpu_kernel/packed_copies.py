# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fill the copies of a kernel's operands: pads as zeros, pairs in one element, lanes innermost.

Elements are widened, or those of a pair, or of four, made one element of 32 bits, the first in the
low bits. Where the lanes lie along another axis than the rows of the tensor, a block of rows is
transposed in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.indices import (
    at_least,
    at_most,
    choice,
    constant,
    divided,
    less,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand
from conv_compiler.passes.cpu_kernel.row_source import RowSource
from conv_compiler.passes.cpu_kernel.shuffles import deinterleaved, part_of, riffled

# Vectors of a row that are written out one after another; a longer one is a loop.
MOST_UNROLLED = 32


def filled(
    operand: PackedOperand,
    copy: ir.Value,
    first: Mapping[str, ir.Value],
    iterations: Mapping[str, int | ir.Value],
    memory: Address | None = None,
) -> ir.Value:
    """The copy for a chunk that starts at iteration `first` of each loop.

    The summed loops have so many `iterations` in it. There are zeros where it reaches past the
    tensor or into its pads. With the tensor's `memory` the caches are asked for what will be read
    later.
    """
    around, strides = operand.layout.around, operand.layout.strides
    counts = [_extent(operand, axis, iterations) for axis in around]

    def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        place = dict(zip(around, at, strict=True))
        to = plus(*(times(index, strides[axis]) for axis, index in place.items()))
        source = RowSource(operand, first, place, memory)
        return [_Row(operand, source, to).written(values[0])]

    return loops(counts, [copy], a_row)[0]


def _extent(
    operand: PackedOperand, axis: int, iterations: Mapping[str, int | ir.Value]
) -> int | ir.Value:
    """Elements along an axis that a chunk reaches."""
    total: int | ir.Value = operand.data.extents[axis]
    for loop, step in operand.data.index[axis].items():
        count = iterations.get(loop, 0)
        if isinstance(count, ir.Value):
            missing = times(less(constant(operand.ranges[loop]), count), step)
            total = less(constant(total) if isinstance(total, int) else total, missing)
    return total


class _Row:
    """A row of the tensor on its way to the copy; `to` is its first address there."""

    def __init__(self, operand: PackedOperand, source: RowSource, to: ir.Value) -> None:
        self.operand, self.source, self.to = operand, source, to
        self.data, self.layout = operand.data, operand.layout
        self.width = operand.product.lanes

    def written(self, copy: ir.Value) -> ir.Value:
        """The copy with the row in it: zeros where all of it is pads."""
        shared = self.source.starts_inside
        write = self._cut if self.data.is_cut else self._whole
        if self.data.merged:
            write = self._deinterleaved
        if shared is None:
            return write(copy)
        return choice(shared, copy.type, lambda: write(copy), lambda: self._cleared(copy))

    def _whole(self, copy: ir.Value) -> ir.Value:
        """In vectors that end where the row ends."""

        def piece(copy: ir.Value, first: ir.Value, width: int) -> ir.Value:
            return self._put_row(copy, self.source.packed({self.data.last: first}, width), first)

        return self._in_pieces(copy, self.data.extents[-1], piece)

    def _cleared(self, copy: ir.Value) -> ir.Value:
        """All zeros."""
        data, layout = self.data, self.layout
        if data.transposed is None:
            return self._in_pieces(
                copy,
                data.extents[-1],
                lambda copy, first, width: self._put_row(copy, self._zeros(width), first),
            )

        rows = layout.rows or data.extents[-1]

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            start = plus(times(at[0], layout.pitch), times(at[1], layout.rows_apart))

            def piece(copy: ir.Value, first: ir.Value, width: int) -> ir.Value:
                return self._put(copy, self._zeros(width), plus(start, first))

            return [self._in_pieces(values[0], rows * layout.wide, piece)]

        return loops([layout.blocks, data.extents[-1] // rows], [copy], a_block)[0]

    def _in_pieces(self, copy: ir.Value, extent: int, piece: Callable[..., ir.Value]) -> ir.Value:
        """So many elements by whole vectors and what is left by shorter ones."""
        count = extent // self.width
        if count > MOST_UNROLLED:
            (copy,) = loops(
                [count],
                [copy],
                lambda at, values: [piece(values[0], times(at[0], self.width), self.width)],
            )
        else:
            for number in range(count):
                copy = piece(copy, constant(number * self.width), self.width)
        for first, width in _halves(count * self.width, extent, self.width):
            copy = piece(copy, constant(first), width)
        return copy

    def _cut(self, copy: ir.Value) -> ir.Value:
        """In whole vectors, zeros in front of the tensor's first element and behind its last.

        What the last vector writes past the row's end is overwritten by the next row.
        """
        data, layout, extent = self.data, self.layout, self.data.extents[-1]
        has_pad, place = data.low[-1], self.source.place[-1]
        before = at_least(0, less(constant(0), place)) if has_pad else constant(0)
        skipped = at_most(extent, before)
        left = less(constant(extent), skipped)
        # Elements of the copy for each of a block.
        wide = layout.wide if data.transposed is not None else 1
        if has_pad:
            copy = self._front_zeros(copy, times(skipped, wide))
        count = self.width if wide >= self.width else math.gcd(self.width, wide)

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (copy,) = values
            element, block = plus(skipped, times(at[0], self.width)), at[1]
            lane = times(at[2], count)
            if wide % count:
                lane = at_most(wide - count, lane)  # the last one again in part
            rows = []
            for i in range(min(count, layout.block) if data.deep else count):
                shifts = {data.last: element}
                if data.transposed is not None:
                    shifts[data.transposed] = plus(times(block, layout.block), lane, constant(i))
                rows.append(self.source.packed(shifts, self.width))
            rows += [self._zeros(self.width)] * (count - len(rows))
            is_transposed = data.transposed is not None
            row = self.operand.row_place(element) if is_transposed else element
            to = plus(times(block, layout.pitch), row, lane)
            for shift, columns in self._columns(rows, wide):
                copy = self._put(copy, columns, plus(to, constant(shift)))
            return [copy]

        iterations = [_ceil_div(left, self.width), layout.blocks, -(-wide // count)]
        return loops(iterations, [copy], a_block)[0]

    def _front_zeros(self, copy: ir.Value, elements: ir.Value) -> ir.Value:
        """Zeros for so many elements at the start of each block, in whole vectors."""

        def a_vector(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            zeros = self._zeros(self.width)
            place = plus(times(at[0], self.layout.pitch), times(at[1], self.width))
            return [self._put(values[0], zeros, place)]

        iterations = [self.layout.blocks, _ceil_div(elements, self.width)]
        return loops(iterations, [copy], a_vector)[0]

    def _deinterleaved(self, copy: ir.Value) -> ir.Value:
        """Vectors of several channels of a group, deinterleaved into vectors of groups, one a
        channel."""
        data, layout = self.data, self.layout
        assert data.transposed is not None
        channels, groups = data.extents[data.last], data.transposed
        stride = layout.strides[data.last]

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (copy,) = values
            lane = times(at[1], self.width)
            group = plus(times(at[0], layout.block), lane)
            rows = [
                self.source.packed({groups: group, data.last: constant(i * self.width)}, self.width)
                for i in range(channels)
            ]
            to = plus(times(at[0], layout.pitch), lane)
            for channel, column in enumerate(deinterleaved(rows)):
                copy = self._put(copy, column, plus(to, constant(channel * stride)))
            return [copy]

        return loops([layout.blocks, layout.block // self.width], [copy], a_block)[0]

    def _columns(self, rows: list[ir.Value], wide: int) -> Iterator[tuple[int, ir.Value]]:
        """The rows transposed, each vector with its address from the first one's on.

        A block has `wide` elements.
        """
        transposed = riffled(rows)
        if wide == len(rows):
            yield from ((i * self.width, row) for i, row in enumerate(transposed))
            return
        for number, row in enumerate(transposed):
            for place in range(0, self.width, len(rows)):
                element = (number * self.width + place) // len(rows)
                yield element * wide, part_of(row, place, len(rows))

    def _put_row(self, copy: ir.Value, value: ir.Value, first: ir.Value) -> ir.Value:
        """The copy with a vector of a row in it, the elements of each block side by side."""
        operand, block = self.operand, self.layout.block
        (width,) = ir.VectorType(value.type).shape
        if self.layout.blocks == 1 or block % width == 0:
            return self._put(copy, value, operand.place_of(first))
        for place in range(0, width, block):
            part, at = part_of(value, place, block), plus(first, constant(place))
            copy = self._put(copy, part, operand.place_of(at))
        return copy

    def _put(self, copy: ir.Value, value: ir.Value, at: ir.Value) -> ir.Value:
        map, where = ir.AffineMap.get_identity(1), [plus(self.to, at)]
        return vector.TransferWriteOp(copy.type, value, copy, where, map, [True]).result

    def _zeros(self, width: int) -> ir.Value:
        element = self.operand.product.element
        return vector.BroadcastOp(ir.VectorType.get([width], element), ops.zero(element)).result


def _halves(at: int, end: int, width: int) -> Iterator[tuple[int, int]]:
    """First elements and widths of ever shorter vectors up to an end."""
    while at < end:
        while width > end - at:
            width //= 2
        yield at, width
        at += width


def _ceil_div(value: ir.Value, divisor: int) -> ir.Value:
    return divided(plus(value, constant(divisor - 1)), divisor)
