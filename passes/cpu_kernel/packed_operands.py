"""Operands of a kernel of vectors: copies of what a workgroup reads next, made ready to multiply.

A copy has the axes of the tensor, that of the vector lanes last, as long as the tiles of a
workgroup and of the cache reach. What one register tile reads of it lies together: the innermost
axis is cut into blocks as long as a register tile, which are outermost, or lines of the cache that
lie a power of two apart would drive each other out. `packed_copies.py` fills it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Index
from conv_compiler.passes.cpu_kernel.copy_sources import Source, extent_of
from conv_compiler.passes.cpu_kernel.indices import constant, divided, less, plus, times
from conv_compiler.passes.cpu_kernel.products import Product
from conv_compiler.passes.cpu_kernel.readers import Reader
from conv_compiler.passes.pair_products import PAIR
from conv_compiler.targets.limits import LINE_BYTES, MOST_READS, PARTED_CHANNELS


class PackedOperand:
    """One operand: `ranges` are the trips of each loop that a copy is for; the last tiles of
    `uneven` loops have fewer. An element is used by `reads` register tiles.

    `low` and `high` are the pads of the tensor `value`, `extents` and `strides` the copy's, all by
    axis of the tensor. A row is what lies along its last axis. `turned` is the axis of the lanes
    where that is another one: rows of the copy are then columns of the tensor; `merged` the tensor
    with that axis and the last one as one, where these are read so. Its innermost axis
    is cut into `blocks` of `block` elements, with room for `wide`; each begins `pitch` elements
    behind the one before.
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
        reader: Reader,
    ) -> None:
        self.product, self.ranges = product, ranges
        source = Source.of(value, index)
        whole = source.with_long_rows(ranges, lanes, lambda inner, joined: True)
        self.is_direct = self._lies_ready(whole, uneven, lanes, reads, summed, reader)
        if not self.is_direct:
            whole = source.with_long_rows(
                ranges, lanes, lambda inner, joined: reader.may_join(inner, joined, ranges)
            )
        self.value, self.index = whole.value, whole.index
        self.low, self.high = list(whole.low), list(whole.high)
        # A row is copied whole, past the end of a short tile.
        self.high[-1] += any(loop in uneven for loop in self.index[-1])
        self.extents = [extent_of(axis, ranges) for axis in self.index]
        self.last = len(self.index) - 1
        of_lanes = [axis for axis, steps in enumerate(self.index) if lanes in steps]
        self.turned = of_lanes[0] if of_lanes and of_lanes[0] != self.last else None
        # What the instruction sums of pixels that are turned lies alone, from line to line.
        self.deep = reader.deep_block(self.index[self.turned]) if self.turned is not None else 0
        if self.turned is not None and lanes in summed and not self.deep:
            # Whole vectors are transposed; what they have past a short tile is not multiplied.
            missing = max(0, product.lanes - self.extents[self.turned])
            self.extents[self.turned] += missing
            self.high[self.turned] += missing
        if self.turned is not None:
            self.high[self.turned] += any(loop in uneven for loop in self.index[self.turned])
        self.merged = self._merged(lanes in summed)
        self.is_wide = bool(of_lanes)
        apart = sum(self.index[axis][lanes] for axis in of_lanes)
        if of_lanes and apart != 1:
            raise UnsupportedStrategy(
                f"lanes {lanes}: {apart} elements apart in memory; order the loops"
            )
        self._lay_out(of_lanes, reader)

    def _lay_out(self, of_lanes: list[int], reader: Reader) -> None:
        """Decide where elements lie in the copy, or know it of the tensor."""
        lengths = self.extents
        if self.is_direct:
            lengths = ops.shape_of(self.value)
            axes = list(range(len(lengths)))
            self.value = ops.reshape(self.value, [math.prod(lengths)], [axes])
        axes = [axis for axis in range(len(lengths)) if axis not in of_lanes]
        alone = [
            axis
            for axis in axes
            if axis != self.last and not self.is_direct and reader.reads_one(self.index[axis])
        ]
        *order, inner = [*alone, *(axis for axis in axes if axis not in alone), *of_lanes]
        # Rows are copied as they lie in memory; cut ones in the order of the copy.
        rows = order if self.is_cut else axes
        self.around = [axis for axis in rows if axis not in (self.last, inner)]
        self.block = lengths[inner]
        if not self.is_direct and (self.turned is not None or not self.is_cut):
            self.block = reader.block(self.index[inner], self.ranges) or self.block
        self.block = self.deep or self.block
        self.wide = self.product.lanes if self.deep else self.block
        self.blocks = lengths[inner] // self.block
        self.strides, length = {inner: 1}, self.wide
        # What is turned lies in blocks of the rows of a tile, too.
        self.rows = reader.block(self.index[-1], self.ranges) if self.deep else 0
        if self.rows:
            self.strides[self.last] = length
            length *= self.rows
            order.remove(self.last)
        for axis in reversed(order):
            self.strides[axis] = length
            length *= lengths[axis]
        self.rows_apart = length
        length *= lengths[self.last] // self.rows if self.rows else 1
        # The end of the last row's vector, unless rows are whole vectors.
        wide = self.wide if self.turned is not None else 1
        ends = self.low[-1] > 0 or self.extents[-1] % self.product.lanes > 0
        cut = self.is_cut and self.merged is None
        room = (self.product.lanes - 1) * wide if cut and ends else 0
        whole = math.lcm(self.block, self.product.lanes) if self.deep else 1
        self.inner, self.pitch = inner, -(-(length + room) // whole) * whole
        self.steps: dict[str, int] = {}
        for axis, steps in enumerate(self.index):
            for loop, step in steps.items():
                # A tile begins with a block.
                is_cut = axis == inner and self.blocks > 1
                apart = self.pitch // self.block if is_cut else self.strides[axis]
                if axis == self.last and self.rows:
                    apart = self.rows_apart // self.rows
                self.steps[loop] = self.steps.get(loop, 0) + step * apart

    def _lies_ready(
        self,
        source: Source,
        uneven: Collection[str],
        lanes: str,
        reads: int,
        summed: Collection[str],
        reader: Reader,
    ) -> bool:
        """Whether the tensor itself may be read: it has no pads, the type that is multiplied and
        lanes innermost, its rows hold several pixels, a register tile reads whole lines or pixels,
        and it is read a few times at most."""
        *others, row = source.index
        inner = [loop for loop, step in row.items() if step == 1 and loop in reader.tile]
        read = math.prod(reader.tile[loop] for loop in inner)
        by_lines = read * ops.element_of(source.value).width >= 8 * LINE_BYTES
        return (
            (by_lines or all(read == self.ranges[loop] for loop in inner))
            and not any((*source.low, *source.high))
            and ops.element_of(source.value) == self.product.element
            and all(lanes not in axis for axis in others)
            and any(loop in summed for loop in row)
            and not any(loop in uneven for loop in row)
            and reads <= MOST_READS
        )

    def _merged(self, of_pixels: bool) -> ir.Value | None:
        """The tensor with the axis of the lanes and the last one, which is short, as one: whole
        vectors of it are parted into those of the copy. None where that is not what there is."""
        if self.turned != self.last - 1 or of_pixels or self.low[-1] or self.high[-1]:
            return None
        shape = ops.shape_of(self.value)
        *others, lanes, short = shape
        is_whole = self.extents[-1] == short and not self.low[self.turned]
        if (
            not is_whole
            or short not in PARTED_CHANNELS
            or any(PAIR in axis for axis in self.index[-2:])
        ):
            return None
        groups = [*([axis] for axis in range(len(others))), [self.turned, self.last]]
        return ops.reshape(self.value, [*others, lanes * short], groups)

    @property
    def row_axes(self) -> tuple[int, ...]:
        """The axes of the tensor that a row in one piece of memory lies along."""
        return (self.last,) if self.merged is None else (self.last - 1, self.last)

    @property
    def row_elements(self) -> int:
        """Elements of such a row that are copied."""
        return math.prod(self.extents[axis] for axis in self.row_axes)

    def start(self, first: Mapping[str, ir.Value]) -> ir.Value:
        """Address of the first trip of some loops, from which addresses count."""
        return self.base(first) if self.is_direct else constant(0)

    @property
    def parts(self) -> int:
        """Elements of the tensor in one of the copy."""
        return self.product.factors if any(PAIR in axis for axis in self.index) else 1

    @property
    def is_cut(self) -> bool:
        """Whether rows are copied in whole vectors, whose ends the next row writes over."""
        return self.turned is not None or self.low[-1] > 0

    def empty(self) -> ir.Value:
        """The copy, before anything is in it."""
        return stack_tensor([self.blocks * self.pitch], self.product.element)

    def element(
        self, first: Mapping[str, ir.Value], shifts: Mapping[int, ir.Value], partner: int = 0
    ) -> list[ir.Value]:
        """Index in the tensor, or in its pads, from trip `first` of each loop on by `shifts` along
        some axes; of an image, or of a partner that stands in the same element."""
        found = []
        for axis, steps in enumerate(self.index):
            terms = [times(first[loop], step) for loop, step in steps.items() if loop in first]
            if axis in shifts:
                terms.append(shifts[axis])
            fixed = partner * steps.get(PAIR, 0) - self.low[axis]
            found.append(plus(*terms, constant(fixed)))
        return found

    def base(self, at: Mapping[str, ir.Value], base: ir.Value | None = None) -> ir.Value:
        """Address in the copy of a trip of some loops, from another address on."""
        terms = [times(i, self.steps[loop]) for loop, i in at.items() if loop in self.steps]
        return plus(*terms) if base is None else plus(base, *terms)

    def distance(self, offsets: Mapping[str, int]) -> int:
        """Elements from a tile's first address to one of its vectors."""
        total = 0
        for axis, steps in enumerate(self.index):
            elements = sum(step * offsets.get(loop, 0) for loop, step in steps.items())
            total += self.place(elements) if axis == self.inner else elements * self.strides[axis]
        return total

    def apart(self, loop: str) -> int:
        """Elements from one trip of a loop to the next, inside of a block."""
        return sum(axis.get(loop, 0) * self.strides[i] for i, axis in enumerate(self.index))

    def row_place(self, row: ir.Value) -> ir.Value:
        """Address in a block of what is turned: of an element of the tensor's last axis."""
        if not self.rows:
            return times(row, self.wide)
        number = divided(row, self.rows)
        inside = less(row, times(number, self.rows))
        return plus(times(number, self.rows_apart), times(inside, self.wide))

    def place(self, element: int) -> int:
        """Address in the copy of an element of its innermost axis."""
        if self.blocks == 1:
            return element
        return element // self.block * self.pitch + element % self.block

    def place_of(self, element: ir.Value) -> ir.Value:
        """The same of an index."""
        if self.blocks == 1:
            return element
        number = divided(element, self.block)
        return plus(times(number, self.pitch), less(element, times(number, self.block)))

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
