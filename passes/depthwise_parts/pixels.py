# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread of the kernel `depthwise_pixels`: a strip of result pixels, sums in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    bounded,
    cut,
    inside,
    linear,
    put_where,
)
from conv_compiler.passes.depthwise_parts.filters import load
from conv_compiler.passes.depthwise_parts.products import PRODUCTS

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.depthwise_parts.options import PixelOptions
    from conv_compiler.problem.slides import Slide

# Where a result pixel lies in its thread's strip: depth, row, column.
Place = tuple[int, ir.Value | int, int]


class Pixels:
    """What the threads of a kernel have in common."""

    def __init__(
        self,
        options: PixelOptions,
        slides: tuple[Slide, Slide, Slide],
        operands: tuple[Operand, Operand],
        result: Result,
        accumulator: ir.Type,
    ) -> None:
        self.options, self.result, self.accumulator = options, result, accumulator
        self.depth, self.row, self.column = slides
        self.source, self.weight = operands
        self.tensors = [one.flat() for one in operands]
        self.extra = result.extra()
        if options.product not in PRODUCTS:
            raise UnsupportedStrategy(
                f"product {options.product}: not in the table; known: {', '.join(PRODUCTS)}"
            )
        self.product = PRODUCTS[options.product](options, accumulator)
        # Strips that the threads of all workgroups have, down and across; some may lie outside.
        self.segments = _rounded_up(-(-self.row.units // options.rows), options.down)
        self.across = _rounded_up(-(-self.column.units // options.columns), options.across)
        self.reach = self.column.reach(options.columns)

    def zeros(self) -> ir.Value:
        """No sum."""
        return zeros(ir.VectorType.get([self.options.vector], self.accumulator))


class Strip:
    """The strip of one thread: image `n`, unit of depth, first units of rows and columns, and first
    result channel.

    `place` is the thread's among adjacent ones of the same channels. `real` tells whether it has a
    strip; None where it is known to. `write` puts a vector in its place of the thread's piece of
    the result.
    """

    def __init__(
        self,
        kernel: Pixels,
        at: Sequence[ir.Value],
        channel: ir.Value,
        place: ir.Value,
        real: ir.Value | None,
        write: Callable[[ir.Value, ir.Value, Place], ir.Value],
    ) -> None:
        self.kernel, self.channel, self.real, self.write = kernel, channel, real, write
        self.n, self.deep, self.top, self.left = at
        column, options = kernel.column, kernel.options
        self.taps = kernel.product.taps(kernel.weight, kernel.tensors[1], channel, place)
        self.sources = kernel.product.sources(channel)
        span = (kernel.across - 1) * options.columns * column.step
        self.columns = {
            step: bounded(linear(self.left, column.step, step), column.size, step, span)
            for step in kernel.reach
        }

    def fetched(self, extents: Sequence[int], at: Sequence[ir.Value]) -> ir.Value:
        """The source channels of a pixel (n, depth, row, column) for this thread."""
        options = self.kernel.options
        pixel = _pixel(extents, at)
        address = linear(pixel, options.groups * options.sources, self.sources)
        return load(self.kernel.tensors[0], address, self.kernel.product.read)

    def finish(self, piece: ir.Value, sums: ir.Value, place: Place) -> ir.Value:
        """The piece with a pixel's sums, where there is such a pixel."""
        kernel = self.kernel
        slides = (kernel.depth, kernel.row, kernel.column)
        firsts = (self.deep, self.top, self.left)
        pixels = [
            linear(first, slide.phases, index)
            for first, slide, index in zip(firsts, slides, place, strict=True)
        ]
        tests = [
            below(pixel, slide.outs) if units * slide.phases > slide.outs else None
            for pixel, slide, units in zip(
                pixels,
                slides,
                (
                    kernel.depth.units,
                    kernel.segments * kernel.options.rows,
                    kernel.across * kernel.options.columns,
                ),
                strict=True,
            )
        ]
        extents = [slide.outs for slide in slides]

        def put() -> ir.Value:
            channels = kernel.options.groups * kernel.options.results
            place_in_result = linear(_pixel(extents, [self.n, *pixels]), channels, self.channel)
            places = {"element": place_in_result, "channel": self.channel}
            extra = [one.read(load, places, kernel.options.vector) for one in kernel.extra]
            return self.write(piece, kernel.result.finished(sums, extra), place)

        return put_where(both(self.real, *tests), piece, put)


def _rounded_up(value: int, to: int) -> int:
    return -(-value // to) * to


def _pixel(extents: Sequence[int], at: Sequence[ir.Value]) -> ir.Value:
    """The index of a pixel (n, depth, row, column) of a tensor."""
    found, *others = at
    for extent, index in zip(extents, others, strict=True):
        found = linear(found, extent, index)
    return found


def zeros(type: ir.VectorType) -> ir.Value:
    """A vector of zeros."""
    element = type.element_type
    is_integer = isinstance(element, ir.IntegerType)
    zero = ir.IntegerAttr.get(element, 0) if is_integer else ir.FloatAttr.get(element, 0.0)
    return arith.ConstantOp(type, ir.DenseElementsAttr.get_splat(type, zero)).result


class Lie(NamedTuple):
    """Where a thread lies in its workgroup: image, strip down and across, lane; its place among
    adjacent threads of the same channels; and whether it has a strip, None where all have."""

    image: ir.Value
    down: ir.Value
    across: ir.Value
    lane: ir.Value
    place: ir.Value
    real: ir.Value | None


def threads_place(options: PixelOptions, thread: ir.Value, together: int) -> Lie:
    """Where a thread lies: strips `together` at a time, beside the lanes of each."""
    strips = options.images * options.down * options.across
    used = _rounded_up(strips, together) * options.lanes
    real = below(thread, used) if used < options.threads else None
    row, lane, place = cut(inside(thread, real), (0, options.lanes, together))
    strip = linear(row, together, place)
    if strips % together:
        test = below(strip, strips)
        real, strip = both(real, test), inside(strip, test)
    image, down, across = cut(strip, (options.images, options.down, options.across))
    return Lie(image, down, across, lane, place, real)
