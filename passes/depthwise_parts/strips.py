# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread of the depthwise kernel: its sums over strips of output pixels, window in registers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector
from iree.compiler.dialects import math as math_dialect

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    bounded,
    cut,
    in_32_bits,
    inside,
    linear,
    loop,
)

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.options import StripOptions
    from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """One spatial dimension; a missing one has a size and a filter of 1."""

    size: int = 1
    outs: int = 1
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0


class Strips:
    """What the threads of one contraction's kernel have in common, and the sums of one of them."""

    def __init__(self, conv: Contraction, options: StripOptions) -> None:
        self.conv, self.options = conv, options
        spatial = [
            _Axis(size=size, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)
            for size, outs, taps, stride, dilation, pad in zip(
                conv.image_pixels[1:],
                conv.pixels[1:],
                conv.taps,
                conv.strides,
                conv.dilations,
                (conv.pad_low[axis] for axis in conv.image_axes[1][1:]),
                strict=True,
            )
        ]
        self.depth, self.row, self.column = [_Axis()] * (3 - len(spatial)) + spatial
        self.image, self.gradient = _flat(conv.image), _flat(conv.gradient)
        self.type = ops.element_of(conv.image)
        self.is_integer = isinstance(self.type, ir.IntegerType)
        vector_of = options.vector
        self.loaded = ir.VectorType.get([vector_of], self.type)
        self.summed = ir.VectorType.get([vector_of], conv.accumulator)
        self.taps = math.prod(conv.taps)
        self.vectors = conv.groups // vector_of
        self.blocks = -(-self.vectors // options.lanes)
        self.together = options.threads // options.lanes  # strips of a round
        self.segments = -(-self.row.outs // options.rows)
        self.across = -(-self.column.outs // options.columns)
        self.strips = conv.pixels[0] * self.depth.outs * self.segments * self.across
        self.rounds = -(-self.strips // (options.split_k * self.together))
        # Columns of the image a strip's row reads, from its first window's first on.
        self.reach = sorted(
            {
                u * self.column.stride + x * self.column.dilation
                for u in range(options.columns)
                for x in range(self.column.taps)
            }
        )
        # Rows of a window that are its next one's too: tap y + shift is the next one's tap y.
        self.shift, rest = divmod(self.row.stride, self.row.dilation)
        self.kept = 0 if rest else max(0, self.row.taps - self.shift)

    def thread(self, part: ir.Value, block: ir.Value, thread: ir.Value) -> list[ir.Value]:
        """A thread's sums, one vector a tap."""
        options = self.options
        thread = in_32_bits(thread)
        strip, lane = cut(thread, (self.together, options.lanes))
        vectors = linear(block, options.lanes, lane)
        if self.blocks * options.lanes > self.vectors:
            vectors = inside(vectors, below(vectors, self.vectors))
        groups = linear(vectors, options.vector)
        first = linear(part, self.rounds * self.together, strip)

        def a_round(count: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self.strip(linear(count, self.together, first), groups, sums)

        return loop(self.rounds, [self.zeros(self.summed)] * self.taps, a_round)

    def strip(self, strip: ir.Value, groups: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums with those of a strip added."""
        options, row = self.options, self.row
        real = None
        if self.rounds * self.together * options.split_k > self.strips:
            real = below(strip, self.strips)
            strip = inside(strip, real)
        elif options.threads % options.lanes:  # threads of whose sums no use is made
            strip = inside(strip, below(strip, self.strips))
        n, depth, segment, block = cut(
            strip, (self.conv.pixels[0], self.depth.outs, self.segments, self.across)
        )
        top, left = linear(segment, options.rows), linear(block, options.columns)
        window = _Window(self, n, depth, left, groups, real)

        def an_iteration(count: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            sums, rows = values[: self.taps], self.unpacked(values[self.taps :])
            for step in range(options.unroll):
                at = linear(count, options.unroll, linear(top, 1, step))
                rows += window.rows(at, range(len(rows), row.taps))
                gradients = window.gradients(at)
                sums = self.multiply(sums, rows, gradients)
                rows = rows[row.taps - self.kept :]
            return [*sums, *self.packed(rows)]

        start = window.rows(linear(top, 1, -1), range(self.shift, self.shift + self.kept), -1)
        iterations = options.rows // options.unroll
        return loop(iterations, [*sums, *self.packed(start)], an_iteration)[: self.taps]

    def packed(self, rows: Iterable[list[ir.Value]]) -> list[ir.Value]:
        return [value for row in rows for value in row]

    def unpacked(self, values: list[ir.Value]) -> list[list[ir.Value]]:
        width = len(self.reach) * self.depth.taps
        return [values[i : i + width] for i in range(0, len(values), width)]

    def multiply(
        self,
        sums: list[ir.Value],
        rows: list[list[ir.Value]],
        gradients: list[tuple[ir.Value, ir.Value | None]],
    ) -> list[ir.Value]:
        """One output row's products added; a row of the window has all its depths.

        Where a strip goes past the output, zeros meet zeros, not an infinity the image may hold.
        """
        found = list(sums)
        for u, (gradient, test) in enumerate(gradients):
            for tap, (z, y, x) in enumerate(
                (z, y, x)
                for z in range(self.depth.taps)
                for y in range(self.row.taps)
                for x in range(self.column.taps)
            ):
                at = self.reach.index(u * self.column.stride + x * self.column.dilation)
                image = rows[y][z * len(self.reach) + at]
                if test is not None:
                    image = arith.SelectOp(test, image, self.zeros(image.type)).result
                found[tap] = self.multiply_add(image, gradient, found[tap])
        return found

    def multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        if self.is_integer:
            # Widened here: of what comes around a loop LLVM does not know that 24 bits hold it, and
            # a product of 32 bits takes four times as long.
            return arith.AddIOp(c, arith.MulIOp(self.widened(a), self.widened(b)).result).result
        return math_dialect.FmaOp(a, b, c).result

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """a + b, of sums."""
        return (arith.AddIOp if self.is_integer else arith.AddFOp)(a, b).result

    def widened(self, value: ir.Value) -> ir.Value:
        if self.type == self.conv.accumulator:
            return value
        return (arith.ExtSIOp if self.is_integer else arith.ExtFOp)(self.summed, value).result

    def load(self, source: ir.Value, at: ir.Value, test: ir.Value | None) -> ir.Value:
        """The vector at an element's address, or zeros where the test fails."""
        at = arith.IndexCastOp(ir.IndexType.get(), at).result
        map = ir.AffineMap.get_identity(1)
        value = vector.TransferReadOp(
            self.loaded, source, [at], map, ops.zero(self.type), [True]
        ).result
        if test is not None:
            value = arith.SelectOp(test, value, self.zeros(self.loaded)).result
        return value if self.is_integer else self.widened(value)

    def zeros(self, type: ir.Type) -> ir.Value:
        vector_type = ir.VectorType(type)
        element = vector_type.element_type
        zero = (
            ir.IntegerAttr.get(element, 0)
            if isinstance(element, ir.IntegerType)
            else ir.FloatAttr.get(element, 0.0)
        )
        return arith.ConstantOp(type, ir.DenseElementsAttr.get_splat(type, zero)).result


class _Window:
    """Where a strip reads: image `n`, output depth, first output column, groups."""

    def __init__(
        self,
        kernel: Strips,
        n: ir.Value,
        depth: ir.Value,
        left: ir.Value,
        groups: ir.Value,
        real: ir.Value | None,
    ) -> None:
        self.kernel, self.n, self.depth, self.left = kernel, n, depth, left
        self.groups, self.real = groups, real
        column = kernel.column
        at = linear(left, column.stride, -column.pad)
        last = (kernel.across - 1) * kernel.options.columns * column.stride
        self.columns = [
            bounded(linear(at, 1, step), column.size, step - column.pad, last)
            for step in kernel.reach
        ]

    def address(
        self, value: ir.Value, axes: tuple[int, tuple[int, ...], int], at: Sequence[ir.Value]
    ) -> ir.Value:
        """The element's linear address; `at` is (n, depth, row, column), of which the last few."""
        shape = ops.shape_of(value)
        pixels = [at[0], *at[1 + 3 - (len(axes[1]) - 1) :]]
        found = linear(self.groups, math.prod(shape[axes[0] + 1 :]))
        for axis, index in zip(axes[1], pixels, strict=True):
            found = linear(index, math.prod(shape[axis + 1 :]), found)
        return found

    def rows(self, at: ir.Value, taps: Iterable[int], lowest: int = 0) -> list[list[ir.Value]]:
        """Rows of the image that some taps of output row `at` meet, which is `lowest` at least."""
        return [self.image_row(at, y, lowest) for y in taps]

    def image_row(self, at: ir.Value, y: int, lowest: int) -> list[ir.Value]:
        kernel, found = self.kernel, list[ir.Value]()
        conv, row, depth = kernel.conv, kernel.row, kernel.depth
        offset = y * row.dilation - row.pad
        first = offset + lowest * row.stride
        span = (kernel.segments * kernel.options.rows - 1 - lowest) * row.stride
        line, in_column = bounded(linear(at, row.stride, offset), row.size, first, span)
        for z in range(depth.taps):
            offset = z * depth.dilation - depth.pad
            sheet, in_depth = bounded(
                linear(self.depth, depth.stride, offset),
                depth.size,
                offset,
                (depth.outs - 1) * depth.stride,
            )
            for column, in_row in self.columns:
                where = self.address(conv.image, conv.image_axes, (self.n, sheet, line, column))
                test = both(self.real, in_column, in_depth, in_row)
                found.append(kernel.load(kernel.image, where, test))
        return found

    def gradients(self, at: ir.Value) -> list[tuple[ir.Value, ir.Value | None]]:
        """The output gradients of row `at`, and whether each is one where that is not known."""
        kernel, found = self.kernel, list[tuple[ir.Value, ir.Value | None]]()
        conv, options = kernel.conv, kernel.options
        line, in_column = bounded(at, kernel.row.outs, 0, kernel.segments * options.rows - 1)
        last = (kernel.across - 1) * options.columns
        for u in range(options.columns):
            column, in_row = bounded(linear(self.left, 1, u), kernel.column.outs, u, last)
            where = self.address(
                conv.gradient, conv.gradient_axes, (self.n, self.depth, line, column)
            )
            inside = both(in_column, in_row)
            value = kernel.load(kernel.gradient, where, both(self.real, inside))
            found.append((value, inside))
        return found


def _flat(value: ir.Value) -> ir.Value:
    """A tensor as a vector."""
    return ops.merge_axes(value, 0, len(ops.shape_of(value)))
