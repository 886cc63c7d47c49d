"""Fill the copies of a kernel's operands: pads as zeros, pairs in one element, lanes innermost.

Elements are widened, or those of a pair, or four, made one element of 32 bits: the first in the low
bits. Where
the lanes lie along another axis than the rows of the tensor, a block of rows is transposed in
registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

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
from conv_compiler.passes.cpu_kernel.prefetch import FIRST_CACHE, ask
from conv_compiler.passes.cpu_kernel.shuffles import part_of, parted, riffled
from conv_compiler.passes.pair_products import PAIR

# Vectors of a row that are written out one after another; a longer one is a loop.
MOST_UNROLLED = 32
# How far behind what is read the caches are asked, where they are: 2 to 4 KiB took 2 to 5 % off a
# kernel of tiles, 1 KiB nothing.
BYTES_AHEAD = 4096


def filled(
    operand: PackedOperand,
    copy: ir.Value,
    first: Mapping[str, ir.Value],
    trips: Mapping[str, int | ir.Value],
    memory: Address | None = None,
) -> ir.Value:
    """The copy for tiles that start at trip `first` of each loop and have so many trips of the
    summed ones; zeros where they reach past the tensor or into its pads. With the tensor's `memory`
    the caches are asked for what will be read a little later."""
    o = operand
    counts = [_extent(o, axis, trips) for axis in o.around]

    def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        return [_Row(o, first, dict(zip(o.around, at, strict=True)), memory).written(values[0])]

    return loops(counts, [copy], a_row)[0]


def _extent(o: PackedOperand, axis: int, trips: Mapping[str, int | ir.Value]) -> int | ir.Value:
    """Elements along an axis that tiles of so many trips reach."""
    total: int | ir.Value = o.extents[axis]
    for loop, step in o.index[axis].items():
        count = trips.get(loop, 0)
        if isinstance(count, ir.Value):
            missing = times(less(constant(o.ranges[loop]), count), step)
            total = less(constant(total) if isinstance(total, int) else total, missing)
    return total


class _Row:
    """A row of the tensor and where it goes: `place` is its first index, `to` its first address."""

    def __init__(
        self,
        operand: PackedOperand,
        first: Mapping[str, ir.Value],
        at: Mapping[int, ir.Value],
        memory: Address | None = None,
    ) -> None:
        self.operand, self.memory = operand, memory
        o = operand
        self.to = plus(*(times(index, o.strides[axis]) for axis, index in at.items()))
        self.place = o.element(first, at)
        # Axes along which each vector has an index of its own.
        inside = () if o.merged else (o.last, o.turned)
        self.own = [PAIR in axis or i in inside for i, axis in enumerate(o.index)]
        self.width = o.product.lanes

    def written(self, copy: ir.Value) -> ir.Value:
        """The copy with the row in it: zeros where all of it is pads."""
        shared = self._inside(self.place, [not own for own in self.own])
        write = self._cut if self.operand.is_cut else self._whole
        if self.operand.merged:
            write = self._parted
        if shared is None:
            return write(copy)
        return choice(shared, copy.type, lambda: write(copy), lambda: self._cleared(copy))

    def _whole(self, copy: ir.Value) -> ir.Value:
        """In vectors that end where the row ends."""

        def piece(copy: ir.Value, first: ir.Value, width: int) -> ir.Value:
            return self._put_row(copy, self._packed({self.operand.last: first}, width), first)

        return self._in_pieces(copy, self.operand.extents[-1], piece)

    def _cleared(self, copy: ir.Value) -> ir.Value:
        """All zeros."""
        o = self.operand
        if o.turned is None:
            return self._in_pieces(
                copy,
                o.extents[-1],
                lambda copy, first, width: self._put_row(copy, self._zeros(width), first),
            )

        rows = o.rows or o.extents[-1]

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            start = plus(times(at[0], o.pitch), times(at[1], o.rows_apart))

            def piece(copy: ir.Value, first: ir.Value, width: int) -> ir.Value:
                return self._put(copy, self._zeros(width), plus(start, first))

            return [self._in_pieces(values[0], rows * o.wide, piece)]

        return loops([o.blocks, o.extents[-1] // rows], [copy], a_block)[0]

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

        What the last vector writes past the row's end is written over by the next row.
        """
        o = self.operand
        before = at_least(0, less(constant(0), self.place[-1])) if o.low[-1] else constant(0)
        skipped = at_most(o.extents[-1], before)
        left = less(constant(o.extents[-1]), skipped)
        wide = o.wide if o.turned is not None else 1  # elements of the copy for each of a block
        if o.low[-1]:
            (copy,) = loops(
                [o.blocks, _ceil_div(times(skipped, wide), self.width)],
                [copy],
                lambda at, values: [
                    self._put(
                        values[0],
                        self._zeros(self.width),
                        plus(times(at[0], o.pitch), times(at[1], self.width)),
                    )
                ],
            )
        count = self.width if wide >= self.width else math.gcd(self.width, wide)

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (copy,) = values
            element, block = plus(skipped, times(at[0], self.width)), at[1]
            lane = times(at[2], count)
            if wide % count:
                lane = at_most(wide - count, lane)  # the last one again in part
            rows = []
            for i in range(min(count, o.block) if o.deep else count):
                shifts = {o.last: element}
                if o.turned is not None:
                    shifts[o.turned] = plus(times(block, o.block), lane, constant(i))
                rows.append(self._packed(shifts, self.width))
            rows += [self._zeros(self.width)] * (count - len(rows))
            row = o.row_place(element) if o.turned is not None else element
            to = plus(times(block, o.pitch), row, lane)
            for shift, columns in self._columns(rows, wide):
                copy = self._put(copy, columns, plus(to, constant(shift)))
            return [copy]

        trips = [_ceil_div(left, self.width), o.blocks, -(-wide // count)]
        return loops(trips, [copy], a_block)[0]

    def _parted(self, copy: ir.Value) -> ir.Value:
        """Vectors of several channels of a group, parted into vectors of groups, one a channel."""
        o = self.operand
        assert o.turned is not None
        channels, turned = o.extents[o.last], o.turned

        def a_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (copy,) = values
            lane = times(at[1], self.width)
            group = plus(times(at[0], o.block), lane)
            rows = [
                self._packed({turned: group, o.last: constant(i * self.width)}, self.width)
                for i in range(channels)
            ]
            to = plus(times(at[0], o.pitch), lane)
            for channel, column in enumerate(parted(rows)):
                copy = self._put(copy, column, plus(to, constant(channel * o.strides[o.last])))
            return [copy]

        return loops([o.blocks, o.block // self.width], [copy], a_block)[0]

    def _columns(self, rows: list[ir.Value], wide: int) -> Iterator[tuple[int, ir.Value]]:
        """The rows transposed, with the address of each vector from the first on, where there are
        so many elements in a block."""
        turned = riffled(rows)
        if wide == len(rows):
            yield from ((i * self.width, row) for i, row in enumerate(turned))
            return
        for number, row in enumerate(turned):
            for place in range(0, self.width, len(rows)):
                element = (number * self.width + place) // len(rows)
                yield element * wide, part_of(row, place, len(rows))

    def _put_row(self, copy: ir.Value, value: ir.Value, first: ir.Value) -> ir.Value:
        """The copy with so many elements of a row in it, a block's next to one another."""
        o = self.operand
        (width,) = ir.VectorType(value.type).shape
        if o.blocks == 1 or o.block % width == 0:
            return self._put(copy, value, o.place_of(first))
        for place in range(0, width, o.block):
            part, at = part_of(value, place, o.block), plus(first, constant(place))
            copy = self._put(copy, part, o.place_of(at))
        return copy

    def _put(self, copy: ir.Value, value: ir.Value, at: ir.Value) -> ir.Value:
        map, where = ir.AffineMap.get_identity(1), [plus(self.to, at)]
        return vector.TransferWriteOp(copy.type, value, copy, where, map, [True]).result

    def _zeros(self, width: int) -> ir.Value:
        element = self.operand.product.element
        return vector.BroadcastOp(ir.VectorType.get([width], element), ops.zero(element)).result

    def _packed(self, shifts: Mapping[int, ir.Value], width: int) -> ir.Value:
        """So many elements of the copy, from the row's first on by `shifts` along some axes."""
        o, parts = self.operand, []
        for partner in range(o.parts):
            index = [
                plus(
                    i, constant(partner * axis.get(PAIR, 0)), *([shifts[n]] if n in shifts else [])
                )
                for n, (i, axis) in enumerate(zip(self.place, o.index, strict=True))
            ]
            parts.append(self._loaded(index, width))
        return o.product.pack(parts)

    def _loaded(self, index: Sequence[ir.Value], width: int) -> ir.Value:
        """So many elements of the tensor from an index on; zeros outside of it."""
        o = self.operand
        if self.memory:
            ask(plus(self.memory.of(list(index)), constant(BYTES_AHEAD)), FIRST_CACHE)
        element = ops.element_of(o.value)
        type, zero = ir.VectorType.get([width], element), ops.zero(element)
        # A vector that begins inside is cut off at the end.
        by_test = [own and (axis != o.last or width == 1) for axis, own in enumerate(self.own)]
        inside = self._inside(index, by_test)
        past_end = o.is_cut and (o.low[-1] or o.extents[-1] % width)
        whole = width == 1 or not (o.high[-1] or past_end)
        value, place = o.value, list(index)
        if o.merged:
            *others, group, channel = index
            place = [*others, plus(times(group, o.extents[-1]), channel)]
            value, whole = o.merged, not o.high[-2]
        map = ir.AffineMap.get_minor_identity(len(place), 1)

        def read() -> ir.Value:
            return vector.TransferReadOp(type, value, place, map, zero, [whole]).result

        if inside is None:
            return read()
        return choice(inside, type, read, lambda: vector.BroadcastOp(type, zero).result)

    def _inside(self, index: Sequence[ir.Value], axes: Sequence[bool]) -> ir.Value | None:
        """Whether an index is the tensor's along some axes; None where it cannot be another."""
        o, inside = self.operand, None
        for axis, (at, size) in enumerate(zip(index, ops.shape_of(o.value), strict=True)):
            if axes[axis] and (o.low[axis] or o.high[axis]):
                test = arith.CmpIOp(arith.CmpIPredicate.ult, at, constant(size)).result
                inside = test if inside is None else arith.AndIOp(inside, test).result
        return inside


def _halves(at: int, end: int, width: int) -> Iterator[tuple[int, int]]:
    """First elements and widths of ever shorter vectors up to an end."""
    while at < end:
        while width > end - at:
            width //= 2
        yield at, width
        at += width


def _ceil_div(value: ir.Value, divisor: int) -> ir.Value:
    return divided(plus(value, constant(divisor - 1)), divisor)
