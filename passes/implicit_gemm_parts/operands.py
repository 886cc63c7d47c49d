# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operands of an implicit GEMM are read from: image and gradient, pixels or windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from iree.compiler import ir

from conv_compiler.build.bwd_weight import BATCH_CHUNKS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.implicit_gemm_parts.gather_source import (
    PixelAxis,
    Source,
    behind_unit_axis,
    merge_pixels,
)


def merge_groups(conv: Contraction, groups: int) -> Contraction:
    """The contraction in which so many neighbouring groups are one."""
    if groups == 1:
        return conv

    def view(value: ir.Value, axes: tuple[int, tuple[int, ...], int]) -> ir.Value:
        if axes[2] != axes[0] + 1 or conv.groups % groups:
            raise UnsupportedStrategy(
                f"{groups} of {conv.groups} groups merged: channels of a whole number of them must "
                "lie side by side; use another form"
            )
        return ops.merge_axes(
            ops.split_axis(value, axes[0], (conv.groups // groups, groups)), axes[2], 2
        )

    return replace(
        conv,
        image=view(conv.image, conv.image_axes),
        gradient=view(conv.gradient, conv.gradient_axes),
        groups=conv.groups // groups,
        gemm_m=conv.gemm_m * groups,
        channels=conv.channels * groups,
    )


def cut_batch(conv: Contraction, chunk: int) -> Contraction:
    """The contraction with its batch as two loops, `no` over chunks of so many images and `n` in
    one: `no` is a spatial axis more, with a window of one tap.

    Raises UnsupportedStrategy where the batch is not a whole number of chunks.
    """
    (n, *space), batches = conv.pixels, conv.pixels[0] // chunk
    if n % chunk:
        raise UnsupportedStrategy(
            f"batch {n} in chunks of {chunk}: not a whole number of them; use another form"
        )

    def view(
        value: ir.Value, axes: tuple[int, tuple[int, ...], int]
    ) -> tuple[ir.Value, tuple[int, tuple[int, ...], int]]:
        group, (batch, *others), channel = axes

        def moved(axis: int) -> int:
            return axis + (axis > batch)

        cut = (batch + 1, batch, *map(moved, others))
        split = ops.split_axis(value, batch, (batches, chunk))
        return split, (moved(group), cut, moved(channel))

    def with_zero(pads: tuple[int, ...]) -> tuple[int, ...]:
        at = conv.image_axes[1][0]
        return (*pads[:at], 0, *pads[at:])

    image, image_axes = view(conv.image, conv.image_axes)
    gradient, gradient_axes = view(conv.gradient, conv.gradient_axes)
    return replace(
        conv,
        image=image,
        gradient=gradient,
        image_axes=image_axes,
        gradient_axes=gradient_axes,
        taps=(1, *conv.taps),
        pixels=(chunk, batches, *space),
        pixel_loops=(conv.pixel_loops[0], BATCH_CHUNKS, *conv.pixel_loops[1:]),
        strides=(1, *conv.strides),
        dilations=(1, *conv.dilations),
        pad_low=with_zero(conv.pad_low),
        pad_high=with_zero(conv.pad_high),
    )


def _source(
    value: ir.Value,
    axes: tuple[int, tuple[int, ...], int],
    pixels: Iterable[PixelAxis],
    summed: tuple[tuple[int, ...], ...],
    pads: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> Source:
    """A tensor with its (group, ..., channel) axes, its pixel axes shared out to q and r."""
    each = tuple(pixels)
    return Source(
        value=value,
        group_axis=axes[0],
        batch_axis=axes[1][0],
        channel_axis=axes[2],
        summed=tuple(tuple(each[i] for i in part) for part in summed),
        pad_low=pads[0],
        pad_high=pads[1],
    )


def _plain(axes: tuple[int, ...], sizes: tuple[int, ...]) -> Iterable[PixelAxis]:
    return (PixelAxis(axis=axis, size=size) for axis, size in zip(axes, sizes, strict=True))


def gradient(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What A is read from: the output gradient, a pixel at a time."""
    axes = conv.gradient_axes
    return merge_pixels(_source(conv.gradient, axes, _plain(axes[1], conv.pixels), summed))


def image(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What B is read from with taps in rows: the image, a pixel at a time."""
    axes = conv.image_axes
    return merge_pixels(_source(conv.image, axes, _plain(axes[1], conv.image_pixels), summed))


def image_windows(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What B is read from: the image, a window at a time."""
    strides, dilations, window = ((1, *x) for x in (conv.strides, conv.dilations, conv.taps))
    pixels = (
        PixelAxis(axis=axis, size=size, stride=stride, dilation=dilation, window=taps)
        for axis, size, stride, dilation, taps in zip(
            conv.image_axes[1], conv.pixels, strides, dilations, window, strict=True
        )
    )
    pads = (conv.pad_low, conv.pad_high)
    source = _source(conv.image, conv.image_axes, pixels, summed, pads)
    return merge_pixels(source) if conv.is_pointwise else behind_unit_axis(source)


def gradient_windows(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What A is read from with taps in rows: the output gradient, a window at a time.

    Image pixel p and tap t meet the output pixel p - t * dilation + pad_low: in a window over the
    gradient with the taps in reverse order. Strides must be 1, pads no wider than the window.
    """
    dilations, window = (1, *conv.dilations), (1, *conv.taps)
    low, high = ([0] * len(ops.shape_of(conv.gradient)) for _ in range(2))
    pixels = []
    for axis, of_image, size, outs, dilation, taps in zip(
        conv.gradient_axes[1],
        conv.image_axes[1],
        conv.image_pixels,
        conv.pixels,
        dilations,
        window,
        strict=True,
    ):
        pixels.append(PixelAxis(axis=axis, size=size, dilation=dilation, window=taps))
        low[axis] = dilation * (taps - 1) - conv.pad_low[of_image]
        # As far as the last image pixel sees: in other directions' roles the image may have room
        # for more output pixels than there are.
        high[axis] = size + conv.pad_low[of_image] - outs
    if min(*low, *high) < 0 or set(conv.strides) != {1}:
        raise UnsupportedStrategy(
            f"taps in rows, strides {conv.strides}: need stride 1 and pads within the window; "
            "use another form"
        )
    pads = (tuple(low), tuple(high))
    return behind_unit_axis(_source(conv.gradient, conv.gradient_axes, pixels, summed, pads))
