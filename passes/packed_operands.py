"""Operands of a kernel of vectors: copies of what a workgroup reads next, made ready to multiply.

A copy has the axes of the tensor, as long as the tiles of a workgroup and of the cache reach, with
zeros where they reach past the tensor or into its pads. Elements are widened, or two of a pair made
one element of 32 bits: the first in the low half.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.loop_nest import Index
from conv_compiler.passes.indices import choice, constant, less, loops, plus, times
from conv_compiler.passes.pair_products import PAIR
from conv_compiler.passes.products import Product

# Vectors of a row that are written out one after another; a longer one is a loop.
MOST_UNROLLED = 32


class PackedOperand:
    """One operand: `ranges` are the trips of each loop that a copy is for; the last tiles of
    `uneven` loops have fewer."""

    def __init__(
        self,
        value: ir.Value,
        index: Index,
        ranges: Mapping[str, int],
        uneven: Collection[str],
        lanes: str,
        product: Product,
    ) -> None:
        self.value, self.low, self.high = _source(value)
        # A row is copied whole, past the end of a short tile.
        self.high[-1] += any(loop in uneven for loop in index[-1])
        self.index, self.product, self.ranges = index, product, ranges
        self.extents = [
            1 + sum((ranges[loop] - 1) * step for loop, step in axis.items() if loop != PAIR)
            for axis in index
        ]
        strides = [math.prod(self.extents[axis + 1 :]) for axis in range(len(index))]
        self.steps: dict[str, int] = {}
        for axis, stride in zip(index, strides, strict=True):
            for loop, step in axis.items():
                self.steps[loop] = self.steps.get(loop, 0) + step * stride
        self.is_wide = lanes in self.steps
        if self.steps.get(lanes, 1) != 1:
            raise UnsupportedStrategy(
                f"lanes {lanes}: {self.steps[lanes]} elements apart in memory; order the loops"
            )

    @property
    def is_paired(self) -> bool:
        """Whether an element of the copy holds two of the tensor."""
        return any(PAIR in axis for axis in self.index)

    def empty(self) -> ir.Value:
        """The copy, before anything is in it."""
        return tensor.EmptyOp([math.prod(self.extents)], self.product.element).result

    def filled(
        self,
        copy: ir.Value,
        first: Mapping[str, ir.Value],
        trips: Mapping[str, int | ir.Value],
    ) -> ir.Value:
        """The copy for tiles that start at trip `first` of each loop and have so many trips of the
        summed ones."""
        origin = [self._origin(axis, first) for axis in self.index]
        around = [
            self._extent(axis, extent, trips)
            for axis, extent in zip(self.index[:-1], self.extents[:-1], strict=True)
        ]

        def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [self._row(values[0], origin, at)]

        return loops(around, [copy], a_row)[0]

    def _extent(
        self, axis: Mapping[str, int], extent: int, trips: Mapping[str, int | ir.Value]
    ) -> int | ir.Value:
        """Elements along an axis that tiles of so many trips reach."""
        total: int | ir.Value = extent
        for loop, step in axis.items():
            count = trips.get(loop, 0)
            if isinstance(count, ir.Value):
                missing = times(less(constant(self.ranges[loop]), count), step)
                whole = constant(total) if isinstance(total, int) else total
                total = less(whole, missing)
        return total

    def _origin(self, axis: Mapping[str, int], first: Mapping[str, ir.Value]) -> ir.Value:
        terms = [times(first[loop], step) for loop, step in axis.items() if loop in first]
        return plus(*terms)

    def _row(self, copy: ir.Value, origin: Sequence[ir.Value], at: Sequence[ir.Value]) -> ir.Value:
        """The copy with one row of its innermost axis written: zeros where all of it is pads."""
        to = constant(0)
        for index, extent in zip(at, self.extents[:-1], strict=True):
            to = plus(times(to, extent), index)
        to = times(to, self.extents[-1])
        place = [plus(o, i) for o, i in zip(origin[:-1], at, strict=True)]
        place = [
            plus(i, constant(-low)) for i, low in zip((*place, origin[-1]), self.low, strict=True)
        ]
        own = [PAIR in axis for axis in self.index]
        own[-1] = True
        shared = self._inside(place, [not alone for alone in own])

        def piece(copy: ir.Value, first: ir.Value, width: int, is_real: bool) -> ir.Value:
            map = ir.AffineMap.get_identity(1)
            value = self._packed(place, first, width, own) if is_real else self._zeros(width)
            where = [plus(to, first)]
            return vector.TransferWriteOp(copy.type, value, copy, where, map, [True]).result

        def written(copy: ir.Value, is_real: bool) -> ir.Value:
            pieces = list(self._pieces())
            if len(pieces) > MOST_UNROLLED:
                width = pieces[0][1]
                count = self.extents[-1] // width
                (copy,) = loops(
                    [count],
                    [copy],
                    lambda at, values: [piece(values[0], times(at[0], width), width, is_real)],
                )
                pieces = pieces[count:]
            for first, width in pieces:
                copy = piece(copy, constant(first), width, is_real)
            return copy

        if shared is None:
            return written(copy, is_real=True)
        return choice(shared, copy.type, lambda: written(copy, True), lambda: written(copy, False))

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """First elements and widths of the vectors of a row; single ones where pads come first."""
        at, extent = 0, self.extents[-1]
        width = self.product.lanes if not self.low[-1] else 1
        while at < extent:
            while width > extent - at:
                width //= 2
            yield at, width
            at += width

    def _zeros(self, width: int) -> ir.Value:
        type = ir.VectorType.get([width], self.product.element)
        return vector.BroadcastOp(type, ops.zero(self.product.element)).result

    def _packed(
        self, place: Sequence[ir.Value], first: ir.Value, width: int, own: Sequence[bool]
    ) -> ir.Value:
        """So many elements of the copy, from element `first` of the row at `place` on."""
        parts = []
        for partner in range(1 + self.is_paired):
            further = [constant(partner * axis.get(PAIR, 0)) for axis in self.index]
            index = [plus(i, step) for i, step in zip(place, further, strict=True)]
            index[-1] = plus(index[-1], first)
            parts.append(self._loaded(index, width, own))
        return self.product.pack(parts)

    def _inside(self, index: Sequence[ir.Value], axes: Sequence[bool]) -> ir.Value | None:
        """Whether an index is the tensor's along some axes; None where it cannot be another."""
        inside = None
        for axis, (at, size) in enumerate(zip(index, ops.shape_of(self.value), strict=True)):
            if axes[axis] and (self.low[axis] or self.high[axis]):
                test = arith.CmpIOp(arith.CmpIPredicate.ult, at, constant(size)).result
                inside = test if inside is None else arith.AndIOp(inside, test).result
        return inside

    def _loaded(self, index: Sequence[ir.Value], width: int, own: Sequence[bool]) -> ir.Value:
        """So many elements of the tensor from an index on; zeros outside of it along some axes."""
        element = ops.element_of(self.value)
        type, zero = ir.VectorType.get([width], element), ops.zero(element)
        map = ir.AffineMap.get_minor_identity(len(index), 1)
        # A vector that begins inside is cut off at the end.
        *outer, last = own
        inside = self._inside(index, [*outer, last and width == 1])
        whole = not self.high[-1] or width == 1

        def read() -> ir.Value:
            return vector.TransferReadOp(type, self.value, index, map, zero, [whole]).result

        if inside is None:
            return read()
        return choice(inside, type, read, lambda: vector.BroadcastOp(type, zero).result)

    def base(self, at: Mapping[str, ir.Value], base: ir.Value | None = None) -> ir.Value:
        """Address in the copy of a trip of some loops, from another address on."""
        terms = [times(i, self.steps[loop]) for loop, i in at.items() if loop in self.steps]
        return plus(*terms) if base is None else plus(base, *terms)

    def distance(self, offsets: Mapping[str, int]) -> int:
        """Elements from a tile's first address to one of its vectors."""
        return sum(self.steps.get(loop, 0) * trips for loop, trips in offsets.items())

    def vector(self, copy: ir.Value, base: ir.Value, distance: int) -> ir.Value:
        """A vector of the copy, or one element in all lanes."""
        at = plus(base, constant(distance)) if distance else base
        type = ir.VectorType.get([self.product.lanes], self.product.element)
        if not self.is_wide:
            return vector.BroadcastOp(type, tensor.ExtractOp(copy, [at]).result).result
        map, zero = ir.AffineMap.get_identity(1), ops.zero(self.product.element)
        return vector.TransferReadOp(type, copy, [at], map, zero, [True]).result


def _source(value: ir.Value) -> tuple[ir.Value, list[int], list[int]]:
    """The tensor behind zero pads, and the pads of each axis."""
    low = [0] * len(ops.shape_of(value))
    high = list(low)
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return value, low, high
        if owner.name == "tensor.pad":
            for pads, name in ((low, "static_low"), (high, "static_high")):
                for axis, size in enumerate(ir.DenseI64ArrayAttr(owner.attributes[name])):
                    pads[axis] += size
            value = owner.operands[0]
        elif (inner := _without_units(owner)) is not None:
            value = inner
        else:
            return value, low, high


def _without_units(owner: ir.Operation) -> ir.Value | None:
    """Of a padded tensor that only loses unit axes: the same with the pads outermost; else None."""
    if owner.name != "tensor.collapse_shape" or isinstance(owner.operands[0].owner, ir.Block):
        return None
    pad = owner.operands[0].owner
    if pad.name != "tensor.pad":
        return None
    shape = ops.shape_of(owner.operands[0])
    groups = [
        [ir.IntegerAttr(i).value for i in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(owner.attributes["reassociation"])
    ]
    kept = [[axis for axis in group if shape[axis] > 1] for group in groups]
    if any(len(axes) > 1 for axes in kept):
        return None
    low, high = (
        list(ir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high")
    )
    stays = [axes[0] if axes else group[0] for axes, group in zip(kept, groups, strict=True)]
    if any(low[axis] or high[axis] for axis in range(len(shape)) if axis not in stays):
        return None
    inner = pad.operands[0]
    sizes = [ops.shape_of(inner)[axis] for axis in stays]
    with ir.InsertionPoint(owner):
        plain = ops.reshape(inner, sizes, groups)
        return ops.pad(plain, [low[axis] for axis in stays], [high[axis] for axis in stays])
