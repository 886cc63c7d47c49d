"""Operands of a kernel of vectors: copies of what a workgroup reads next, made ready to multiply.

A copy has the axes of the tensor, that of the vector lanes last, as long as the tiles of a
workgroup and of the cache reach. `packed_copies.py` fills it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.loop_nest import Axis, Index
from conv_compiler.passes.indices import constant, plus, times
from conv_compiler.passes.pair_products import PAIR
from conv_compiler.passes.products import Product

# Times an element is read at most where it lies; more, and it is copied. Where a row is a piece of
# one pixel it is always copied: a cache has few places for lines that lie a power of two apart.
MOST_READS = 4


class PackedOperand:
    """One operand: `ranges` are the trips of each loop that a copy is for; the last tiles of
    `uneven` loops have fewer. An element is used by `reads` register tiles.

    `low` and `high` are the pads of the tensor `value`, `extents` and `strides` the copy's, all by
    axis of the tensor. A row is what lies along its last axis. `turned` is the axis of the lanes
    where that is another one: rows of the copy are then columns of the tensor.
    """

    def __init__(
        self,
        value: ir.Value,
        index: Index,
        ranges: Mapping[str, int],
        uneven: Collection[str],
        lanes: str,
        product: Product,
        summed: Collection[str],
        reads: int,
    ) -> None:
        self.value, self.low, self.high = _source(value)
        index = self._with_long_rows(index, ranges, lanes)
        # A row is copied whole, past the end of a short tile.
        self.high[-1] += any(loop in uneven for loop in index[-1])
        self.index, self.product, self.ranges = index, product, ranges
        self.extents = [_extent(axis, ranges) for axis in index]
        of_lanes = [axis for axis, steps in enumerate(index) if lanes in steps]
        self.turned = of_lanes[0] if of_lanes and of_lanes[0] != len(index) - 1 else None
        if self.turned is not None and lanes in summed:
            # Whole vectors are transposed; what they have past a short tile is not multiplied.
            missing = max(0, product.lanes - self.extents[self.turned])
            self.extents[self.turned] += missing
            self.high[self.turned] += missing
        self.is_direct = self._lies_ready(lanes, reads, summed)
        lengths = self.extents
        if self.is_direct:
            lengths = ops.shape_of(self.value)
            axes = list(range(len(lengths)))
            self.value = ops.reshape(self.value, [math.prod(lengths)], [axes])
        order = [axis for axis in range(len(index)) if axis not in of_lanes] + of_lanes
        self.strides = {
            axis: math.prod(lengths[inner] for inner in order[place + 1 :])
            for place, axis in enumerate(order)
        }
        self.last = len(index) - 1
        self.around = [axis for axis in order if axis not in (self.last, self.turned)]
        self.steps: dict[str, int] = {}
        for axis, steps in enumerate(index):
            for loop, step in steps.items():
                self.steps[loop] = self.steps.get(loop, 0) + step * self.strides[axis]
        self.is_wide = bool(of_lanes)
        if self.steps.get(lanes, 1) != 1:
            raise UnsupportedStrategy(
                f"lanes {lanes}: {self.steps[lanes]} elements apart in memory; order the loops"
            )

    def _with_long_rows(self, index: Index, ranges: Mapping[str, int], lanes: str) -> Index:
        """The index with the last axes made one, as long as rows are copied whole, without pads."""
        while len(index) > 1 and lanes not in index[-2]:
            *shape, above, size = ops.shape_of(self.value)
            outer, inner = index[-2:]
            whole = _extent(inner, ranges) == size and not self.low[-1] and not self.high[-1]
            if not whole or PAIR in outer or PAIR in inner or outer.keys() & inner.keys():
                break
            groups = [*([axis] for axis in range(len(shape))), [len(shape), len(shape) + 1]]
            self.value = ops.reshape(self.value, [*shape, above * size], groups)
            scaled = {loop: step * size for loop, step in outer.items()}
            index = (*index[:-2], {**scaled, **inner})
            for pads in (self.low, self.high):
                pads[-2:] = [pads[-2] * size]
        return index

    def _lies_ready(self, lanes: str, reads: int, summed: Collection[str]) -> bool:
        """Whether the tensor itself may be read: it has no pads, the type that is multiplied and
        lanes innermost, its rows hold several pixels, and it is read a few times at most."""
        return (
            not any((*self.low, *self.high))
            and ops.element_of(self.value) == self.product.element
            and all(lanes not in axis for axis in self.index[:-1])
            and any(loop in summed for loop in self.index[-1])
            and reads <= MOST_READS
        )

    def start(self, first: Mapping[str, ir.Value]) -> ir.Value:
        """Address of the first trip of some loops, from which addresses count."""
        return self.base(first) if self.is_direct else constant(0)

    @property
    def parts(self) -> int:
        """Elements of the tensor in one of the copy."""
        return self.product.factors if any(PAIR in axis for axis in self.index) else 1

    @property
    def columns(self) -> int:
        """Elements of the copy for each one of a row."""
        return 1 if self.turned is None else self.extents[self.turned]

    @property
    def is_cut(self) -> bool:
        """Whether rows are copied in whole vectors, whose ends the next row writes over."""
        return self.turned is not None or self.low[-1] > 0

    def empty(self) -> ir.Value:
        """The copy, before anything is in it, with room for the end of the last row's vector."""
        room = (self.product.lanes - 1) * self.columns if self.is_cut else 0
        return stack_tensor([math.prod(self.extents) + room], self.product.element)

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


def stack_tensor(shape: list[int], element: ir.Type) -> ir.Value:
    """A tensor with nothing in it, that will lie on the stack."""
    # Of a tensor.empty each branch, data and zeros, would get a buffer of its own.
    made = ir.Operation.create(
        "bufferization.alloc_tensor",
        results=[ir.RankedTensorType.get(shape, element)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0])},
    )
    result: ir.Value = made.results[0]
    return result


def _extent(axis: Axis, ranges: Mapping[str, int]) -> int:
    """Elements along an axis that tiles of so many trips reach."""
    return 1 + sum((ranges[loop] - 1) * step for loop, step in axis.items() if loop != PAIR)


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
