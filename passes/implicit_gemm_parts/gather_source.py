# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where an operand of an implicit GEMM is read: a tensor, and what its axes stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from iree.compiler import ir

from conv_compiler.ir import ops


@dataclass(frozen=True, kw_only=True)
class PixelAxis:
    """One axis that pixels and window move along.

    There are `size` pixels `stride` apart, each with `window` taps `dilation` apart.
    """

    axis: int
    size: int
    stride: int = 1
    dilation: int = 1
    window: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether a step of the output is a step of the axis, and nothing else moves along it."""
        return (self.stride, self.dilation, self.window) == (1, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tensor and what its axes stand for.

    `summed` holds the pixel axes of each summed axis of the operand, outermost first; `pad_low` and
    `pad_high` the zeros around the tensor, per axis (empty for none). The batch's axis is one of
    those of pixels.
    """

    value: ir.Value
    group_axis: int
    batch_axis: int
    channel_axis: int
    summed: tuple[tuple[PixelAxis, ...], ...]
    pad_low: tuple[int, ...] = ()
    pad_high: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """Axes of the tensor."""
        return len(ops.shape_of(self.value))

    @property
    def pixels(self) -> tuple[PixelAxis, ...]:
        """All pixel axes, in the operand's order."""
        return tuple(pixel for part in self.summed for pixel in part)


def merge_pixels(source: Source) -> Source:
    """The view in which adjacent plain pixel axes are one: fewer divisions.

    Only for a source whose pixels are its whole extents.
    """
    for number, part in enumerate(source.summed):
        for outer, inner in pairwise(part):
            if inner.axis != outer.axis + 1 or not (outer.is_plain and inner.is_plain):
                continue

            def moved(axis: int, gone: int = inner.axis) -> int:
                return axis - (axis >= gone)

            merged = [
                replace(p, axis=moved(p.axis), size=p.size * (inner.size if p is outer else 1))
                for p in part
                if p is not inner
            ]
            summed = [
                tuple(merged)
                if i == number
                else tuple(replace(p, axis=moved(p.axis)) for p in other)
                for i, other in enumerate(source.summed)
            ]
            return merge_pixels(
                Source(
                    value=ops.merge_axes(source.value, outer.axis, 2),
                    group_axis=moved(source.group_axis),
                    batch_axis=moved(source.batch_axis),
                    channel_axis=moved(source.channel_axis),
                    summed=tuple(summed),
                )
            )
    return source


def behind_unit_axis(source: Source) -> Source:
    """The view with a unit axis last, where IREE must not read the innermost axis in vectors.

    IREE 3.13 takes the innermost axis for contiguous if its padded extent is a multiple of the
    vector (`chooseDimToVectorize` in `LinalgExt/IR/Im2colUtils.cpp`). Two things break that. A
    window moves along the axis: IREE's `isUnitWindowMOutputDim` looks at the window of another
    axis. Or the pixels are fewer than the extent: a vector then reaches past the last pixel, where
    the next row of pixels should follow. A unit axis behind it leaves nothing to vectorise.
    """
    last = source.rank - 1
    extent = ops.shape_of(source.value)[last] + sum(
        pads[last] for pads in (source.pad_low, source.pad_high) if pads
    )
    if all(p.is_plain and p.size == extent for p in source.pixels if p.axis == last):
        return source
    value = ops.split_axis(source.value, last, (ops.shape_of(source.value)[last], 1))
    low, high = ((*pads, 0) if pads else () for pads in (source.pad_low, source.pad_high))
    return replace(source, value=value, pad_low=low, pad_high=high)
