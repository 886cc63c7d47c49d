# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands of a kernel of vectors: copies of what a workgroup reads next, made ready to multiply.

A copy has the axes of the tensor, that of the vector lanes last, as long as the tiles of a
workgroup and of the cache reach. `copied_data.py` says what it has, `copy_layout.py` where that
lies, and `packed_copies.py` fills it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.copied_data import ChunkShape, CopiedData, Operand, data_of
from conv_compiler.passes.cpu_kernel.copy_layout import CopyLayout, CopyShape, layout_of
from conv_compiler.passes.cpu_kernel.indices import constant, divided, less, plus, times
from conv_compiler.passes.cpu_kernel.products import Product
from conv_compiler.passes.pair_products import PAIR


@dataclass(frozen=True, kw_only=True)
class PackedOperand:
    """One operand: what it has of the tensor, where that lies, and how it is multiplied.

    `ranges` are the iterations of each loop in a chunk. Addresses are in elements.
    """

    data: CopiedData
    layout: CopyLayout
    product: Product
    ranges: Mapping[str, int]

    @classmethod
    def of(cls, operand: Operand, chunk: ChunkShape) -> PackedOperand:
        """The copy of an operand for a chunk, or the tensor itself where that may be read.

        Raises UnsupportedStrategy where the lanes are not adjacent in memory.
        """
        data = data_of(operand, chunk)
        lengths, vectors = data.extents, chunk.product.lanes
        if data.is_direct:
            lengths = tuple(ops.shape_of(data.value))
            flat = ops.reshape(data.value, [math.prod(lengths)], [list(range(len(lengths)))])
            data = replace(data, value=flat)
        has_end = data.low[-1] > 0 or data.extents[-1] % vectors > 0
        shape = CopyShape(
            index=data.index,
            lengths=lengths,
            of_lanes=data.of_lanes,
            transposed=data.transposed,
            deep=data.deep,
            is_direct=data.is_direct,
            is_cut=data.is_cut,
            # The end of the last row's vector, unless rows are whole vectors.
            ends=data.is_cut and data.merged is None and has_end,
            vector=vectors,
        )
        layout = layout_of(shape, chunk.ranges, chunk.reader)
        return cls(data=data, layout=layout, product=chunk.product, ranges=chunk.ranges)

    def start(self, first: Mapping[str, ir.Value]) -> ir.Value:
        """Address of the first iteration of some loops, from which addresses count."""
        return self.base(first) if self.data.is_direct else constant(0)

    @property
    def parts(self) -> int:
        """Elements of the tensor in one of the copy."""
        return self.product.factors if any(PAIR in axis for axis in self.data.index) else 1

    def empty(self) -> ir.Value:
        """The copy, before anything is in it."""
        return stack_tensor([self.layout.length], self.product.element)

    def element(
        self, first: Mapping[str, ir.Value], shifts: Mapping[int, ir.Value], partner: int = 0
    ) -> list[ir.Value]:
        """Index in the tensor, or in its pads, of an element.

        It is the one of iteration `first` of each loop, moved by `shifts` along some axes; of an
        image, or of a `partner` that stands in the same element.
        """
        found = []
        for axis, steps in enumerate(self.data.index):
            terms = [times(first[loop], step) for loop, step in steps.items() if loop in first]
            if axis in shifts:
                terms.append(shifts[axis])
            fixed = partner * steps.get(PAIR, 0) - self.data.low[axis]
            found.append(plus(*terms, constant(fixed)))
        return found

    def base(self, at: Mapping[str, ir.Value], base: ir.Value | None = None) -> ir.Value:
        """Address in the copy of an iteration of some loops, from another address on."""
        steps = self.layout.steps
        terms = [times(i, steps[loop]) for loop, i in at.items() if loop in steps]
        return plus(*terms) if base is None else plus(base, *terms)

    def distance(self, offsets: Mapping[str, int]) -> int:
        """Elements from a tile's first address to one of its vectors."""
        total, layout = 0, self.layout
        for axis, steps in enumerate(self.data.index):
            elements = sum(step * offsets.get(loop, 0) for loop, step in steps.items())
            is_inner = axis == layout.inner
            total += layout.place(elements) if is_inner else elements * layout.strides[axis]
        return total

    def apart(self, loop: str) -> int:
        """Elements from one iteration of a loop to the next, inside of a block."""
        strides = self.layout.strides
        return sum(axis.get(loop, 0) * strides[i] for i, axis in enumerate(self.data.index))

    def row_place(self, row: ir.Value) -> ir.Value:
        """Address in a block of transposed data: of an element of the tensor's last axis."""
        layout = self.layout
        if not layout.rows:
            return times(row, layout.wide)
        number = divided(row, layout.rows)
        inside = less(row, times(number, layout.rows))
        return plus(times(number, layout.rows_apart), times(inside, layout.wide))

    def place_of(self, element: ir.Value) -> ir.Value:
        """Address in the copy of an element of its innermost axis, as `CopyLayout.place`."""
        layout = self.layout
        if layout.blocks == 1:
            return element
        number = divided(element, layout.block)
        start = times(number, layout.pitch)
        return plus(start, less(element, times(number, layout.block)))

    def vector(self, copy: ir.Value, base: ir.Value, distance: int) -> ir.Value:
        """A vector of the copy, or one element in all lanes."""
        at = plus(base, constant(distance)) if distance else base
        type = ir.VectorType.get([self.product.lanes], self.product.element)
        if not self.data.of_lanes:
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
