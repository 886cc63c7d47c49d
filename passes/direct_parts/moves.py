# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that bring the source of a direct kernel, or its result, into another order.

A source may be lengthened by zeros on either side of its rows, and its channels may come to lie
behind its pixels; those of a result come to lie in front. Squares of pixels and channels are
transposed in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import dispatches, ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    constant,
    delinearized,
    divided,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.shuffles import riffled
from conv_compiler.passes.direct_parts.packing import loaded, stored, widened
from conv_compiler.passes.direct_parts.regions import by_workgroups
from conv_compiler.problem.batching import divisors

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.options import Rows

# Workgroups of a kernel, at least where there is so much to share out.
_WORKGROUPS = 256
# The longest vector that is copied, and the longest side of a square that is transposed.
_COPIED, _SQUARE = 32, 16


def _kernel(
    shape: list[int],
    element: ir.Type,
    grid: list[int],
    body: Callable[[list[ir.Value], ir.Value], ir.Value],
) -> ir.Value:
    """A tensor made by workgroups: each has one of `grid` parts of each axis."""
    sizes = [whole // parts for whole, parts in zip(shape, grid, strict=True)]

    def workgroup(number: ir.Value, out: ir.Value) -> Piece:
        at = delinearized(number, grid)
        firsts = [times(i, size) for i, size in zip(at, sizes, strict=True)]
        return body(at, slice_of(out, firsts, sizes, sizes)), firsts, sizes

    return by_workgroups(shape, element, math.prod(grid), "packing", workgroup)


def _zeros(piece: ir.Value, place: list[ir.Value], axis: int, count: int, width: int) -> ir.Value:
    """A piece with zeros along an axis, from a place on."""
    if not count:
        return piece
    element = ops.element_of(piece)
    zero = vector.BroadcastOp(ir.VectorType.get([width], element), ops.zero(element)).result

    def one(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        there = list(place)
        there[axis] = plus(there[axis], times(at[0], width if axis == len(place) - 1 else 1))
        return [stored(zero, values[0], there)]

    steps = count // width if axis == len(place) - 1 else count
    return loops([steps], [piece], one)[0]


def in_type(source: ir.Value, element: ir.Type) -> ir.Value:
    """A tensor in a type that holds its values, by a kernel of its own; itself where it is."""
    if ops.element_of(source) == element:
        return source
    flat = ops.merge_axes(source, 0, len(ops.shape_of(source)))
    region = dispatches.dispatch_region(ir.RankedTensorType.get(ops.shape_of(flat), element))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        dispatches.dispatch_return(
            ops.elementwise([flat], element, lambda x: ops.convert(x, element))
        )
    found: ir.Value = region.results[0]
    return found


def lengthened(source: Operand, element: ir.Type, sizes: Rows) -> ir.Value:
    """A source whose channels lie last, with the pads of its rows; the last vector of a row begins
    earlier where it is not full."""
    flat = source.flat()
    rows = sizes.images * sizes.rows
    front, inside, behind = (
        count * sizes.channels for count in (sizes.pads[0], sizes.pixels, sizes.pads[1])
    )
    width = min(_COPIED, 1 << (inside.bit_length() - 1))
    zeros = math.gcd(sizes.channels, _COPIED)
    parts = next(one for one in divisors(rows) if one >= min(rows, _WORKGROUPS))

    def body(ids: list[ir.Value], piece: ir.Value) -> ir.Value:
        def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            row, here = at[0], times(plus(times(ids[0], rows // parts), at[0]), inside)

            def copied(piece: ir.Value, shift: ir.Value) -> ir.Value:
                value = source.applied(loaded(flat, plus(here, shift), width))
                return stored(widened(value, element), piece, [row, plus(constant(front), shift)])

            def copy(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
                return [copied(values[0], times(at[0], width))]

            piece = _zeros(values[0], [row, constant(0)], 1, front, zeros)
            (piece,) = loops([inside // width], [piece], copy)
            if inside % width:
                piece = copied(piece, constant(inside - width))
            return [_zeros(piece, [row, constant(front + inside)], 1, behind, zeros)]

        return loops([rows // parts], [piece], a_row)[0]

    made = _kernel([rows, front + inside + behind], element, [parts, 1], body)
    return ops.merge_axes(made, 0, 2)


def channels_last(source: Operand, element: ir.Type, sizes: Rows) -> ir.Value:
    """A source whose channels lie in front of its pixels, with the pads of its rows, channels
    last."""
    flat, pixels = source.flat(), sizes.rows * sizes.pixels
    side = _side(pixels, sizes.channels)
    if side == 1:  # odd channels: the last squares begin earlier
        side = min(_most(pixels), _most(sizes.channels))
    is_whole = sizes.channels % side == 0
    parts = _parts(sizes.images, sizes.channels // side) if is_whole else 1
    share = sizes.channels // parts
    assert is_whole or not any(sizes.pads)
    front, behind = sizes.pads

    def body(ids: list[ir.Value], piece: ir.Value) -> ir.Value:
        image, first = times(ids[0], sizes.channels), times(ids[2], share)

        def square(channel: ir.Value, pixel: ir.Value, piece: ir.Value) -> ir.Value:
            base = plus(times(plus(image, first, channel), pixels), pixel)
            rows = [
                widened(
                    source.applied(loaded(flat, plus(base, constant(i * pixels)), side)), element
                )
                for i in range(side)
            ]
            for i, value in enumerate(riffled(rows)):
                at = plus(pixel, constant(i))
                if front or behind:
                    inside = arith.RemUIOp(at, constant(sizes.pixels)).result
                    row = divided(at, sizes.pixels)
                    at = plus(times(row, sizes.whole), inside, constant(front))
                piece = stored(value, piece, [constant(0), at, channel])
            return piece

        def padded(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            channel, begin = times(at[0], side), times(at[1], sizes.whole)
            end = plus(begin, constant(front + sizes.pixels))
            piece = _zeros(values[0], [constant(0), begin, channel], 1, front, side)
            return [_zeros(piece, [constant(0), end, channel], 1, behind, side)]

        piece = _squares(share, pixels, side, piece, square)
        if front or behind:
            piece = loops([share // side, sizes.rows], [piece], padded)[0]
        return piece

    shape = [sizes.images, sizes.rows * sizes.whole, sizes.channels]
    return ops.merge_axes(_kernel(shape, element, [sizes.images, 1, parts], body), 0, 3)


def channels_first(value: ir.Value, images: int, pixels: int, channels: int) -> ir.Value:
    """A tensor of one axis, image, pixel and channel, in the order image, channel and pixel."""
    element, side = ops.element_of(value), _side(pixels, channels)
    parts = _parts(images, channels // side)
    share = channels // parts

    def body(ids: list[ir.Value], piece: ir.Value) -> ir.Value:
        image, first = times(ids[0], pixels), times(ids[1], share)

        def square(channel: ir.Value, pixel: ir.Value, piece: ir.Value) -> ir.Value:
            base = plus(times(plus(image, pixel), channels), first, channel)
            rows = [loaded(value, plus(base, constant(i * channels)), side) for i in range(side)]
            for i, one in enumerate(riffled(rows)):
                piece = stored(one, piece, [constant(0), plus(channel, constant(i)), pixel])
            return piece

        return _squares(share, pixels, side, piece, square)

    made = _kernel([images, channels, pixels], element, [images, parts, 1], body)
    return ops.merge_axes(made, 0, 3)


def _side(pixels: int, channels: int) -> int:
    """The side of squares: a power of two that divides the channels, of no more pixels than
    there are."""
    return math.gcd(channels, _most(pixels))


def _most(count: int) -> int:
    """The longest side, a power of two, of so many pixels or channels."""
    return min(_SQUARE, 1 << (count.bit_length() - 1))


def _parts(images: int, blocks: int) -> int:
    """Shares of the channels of an image: as few as make enough workgroups."""
    return next(one for one in divisors(blocks) if one * images >= _WORKGROUPS or one == blocks)


def _squares(
    channels: int,
    pixels: int,
    side: int,
    piece: ir.Value,
    square: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """A piece with all squares in it; the last ones of an axis begin earlier where pixels or
    channels are no multiple of a side."""
    parts = [
        [(whole // side, 0), (int(whole % side > 0), whole - side)] for whole in (channels, pixels)
    ]
    for (rows, channel), (columns, pixel) in product(*parts):

        def one(
            at: list[ir.Value],
            values: list[ir.Value],
            channel: int = channel,
            pixel: int = pixel,
        ) -> list[ir.Value]:
            row, column = (times(i, side) for i in at)
            there = plus(row, constant(channel)), plus(column, constant(pixel))
            return [square(*there, values[0])]

        if rows and columns:
            (piece,) = loops([rows, columns], [piece], one)
    return piece
