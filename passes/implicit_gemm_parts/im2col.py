"""The operands of an implicit GEMM: `iree_linalg_ext.im2col` of a tensor, read where it lies.

An operand has the axes [g, summed..., columns...]: groups, one or two axes of pixels, and one or
two of columns (window taps and channels). Semantics of the op: IREE's
`compiler/src/iree/compiler/Dialect/LinalgExt/IR/LinalgExtOps.td`, Im2colOp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops


@dataclass(frozen=True, kw_only=True)
class PixelAxis:
    """One axis that pixels and window move along: out of `size` steps of `stride`, with `window`
    taps `dilation` apart."""

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
    `pad_high` the zeros around the tensor, per axis (empty for none).
    """

    value: ir.Value
    group_axis: int
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
    """The view in which plain pixel axes that lie side by side are one: fewer divisions.

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


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """What an operand's columns are made of: channels, the tensor's unit axes that nothing else
    names, and the taps: on an axis of their own, or inside the channels."""

    channels: int
    units: tuple[int, ...]
    taps_outside: bool
    channels_first: bool


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """What the op is told: pixels it walks (M) and what it gathers at each (K), by output axis.

    K has a window coordinate for each pixel axis and an index for each axis of `k_axes`; `k_order`
    names the axes in the order of the coordinates in `k_sizes`. `k_first` is the operand's order.
    """

    pixels: tuple[PixelAxis, ...]
    m_sizes: list[list[int]]
    k_axes: tuple[int, ...]
    k_sizes: list[list[int]]
    k_order: tuple[int, ...]
    k_first: bool = False


def is_summed_innermost(source: Source) -> bool:
    """Whether the innermost summed loop walks the tensor's innermost axis, and windows others."""
    inner = _innermost(source)
    alone = all(pixel.size == 1 for pixel in source.summed[-1] if pixel is not inner)
    windows = any(not pixel.is_plain for pixel in source.pixels)
    return alone and windows and inner.is_plain and inner.axis == source.rank - 1


def _innermost(source: Source) -> PixelAxis:
    """The innermost summed loop of more than one trip, or the last of those there are."""
    part = source.summed[-1]
    return next((pixel for pixel in reversed(part) if pixel.size > 1), part[-1])


def _by_pixels(source: Source, columns: _Columns) -> _Roles:
    """Summed pixels as M, columns as K: read along channels."""
    if columns.channels_first:
        raise UnsupportedStrategy(
            "columns with channels outermost: the image is not read along gemm_k; use another form"
        )
    taps, units = sorted(source.pixels, key=_axis), columns.units
    windows, innermost = [tap.window for tap in taps], [columns.channels, *(1 for _ in units)]
    return _Roles(
        pixels=source.pixels,
        m_sizes=[[pixel.size for pixel in part] for part in source.summed],
        k_axes=(source.channel_axis, *units),
        k_sizes=[windows, innermost] if columns.taps_outside else [[*windows, *innermost]],
        k_order=(*(tap.axis for tap in taps), source.channel_axis, *units),
    )


def _by_columns(source: Source, columns: _Columns) -> _Roles:
    """Columns as M, what is summed as K: read along the innermost summed loop.

    What a tap steps over is then a pixel's stride, and the other way round.
    """
    *outer, last_part = source.summed
    inner, units = _innermost(source), columns.units
    ones = [pixel for pixel in last_part if pixel is not inner]
    taps = sorted((pixel for pixel in source.pixels if pixel is not inner), key=_axis)
    windows = [tap.window for tap in taps]
    outside = [pixel for part in outer for pixel in part]
    last = [*(1 for _ in (*ones, *units)), inner.size]
    sizes = [pixel.size for pixel in outside]
    walked = [
        *(
            PixelAxis(
                axis=tap.axis,
                size=tap.window,
                stride=tap.dilation,
                dilation=tap.stride,
                window=tap.size,
            )
            for tap in taps
        ),
        PixelAxis(axis=source.channel_axis, size=columns.channels),
    ]
    if columns.channels_first:
        walked = [walked[-1], *walked[:-1]]
    extents = [axis.size for axis in walked]
    return _Roles(
        pixels=tuple(walked),
        m_sizes=[windows, [columns.channels]] if columns.taps_outside else [extents],
        k_axes=(*units, inner.axis),
        k_sizes=[[*sizes, 1], last] if outside else [[1, *last]],
        k_order=(
            *(pixel.axis for pixel in outside),
            source.channel_axis,
            *(pixel.axis for pixel in ones),
            *units,
            inner.axis,
        ),
        k_first=True,
    )


def im2col(
    operand: str,
    source: Source,
    channels: int,
    shape: Sequence[int],
    *,
    taps_outside: bool = False,
    channels_first: bool = False,
) -> ir.Value:
    """The operand of `shape`, zero where the source has nothing.

    It is tagged `conv_compiler.operand`, by which the scripts tell the two apart. Its columns are
    (taps, channels), taps in the order of the tensor's axes, on two axes where `taps_outside`; or
    (channels, taps), for an operand that is read along gemm_k.
    """
    used = {source.group_axis, source.channel_axis, *(pixel.axis for pixel in source.pixels)}
    units = tuple(axis for axis in range(source.rank) if axis not in used)
    form = _by_columns if is_summed_innermost(source) else _by_pixels
    columns = _Columns(
        channels=channels, units=units, taps_outside=taps_outside, channels_first=channels_first
    )
    roles = form(source, columns)
    sizes = [[ops.shape_of(source.value)[source.group_axis]], *roles.m_sizes, *roles.k_sizes]
    # The op's axes are the group, M and K; those of its result are the operand's.
    axes = list(range(len(sizes)))
    first_k = 1 + len(roles.m_sizes)
    order = [0, *axes[first_k:], *axes[1:first_k]] if roles.k_first else axes
    extra = [size - math.prod(sizes[axis]) for size, axis in zip(shape, order, strict=True)]
    is_padded = any((*source.pad_low, *source.pad_high))
    low, high = (source.pad_low, source.pad_high) if is_padded else ((), ())
    element = ir.RankedTensorType(source.value.type).element_type
    has_zeros = any(extra) or is_padded
    op = ir.Operation.create(
        "iree_linalg_ext.im2col",
        results=[ir.RankedTensorType.get(list(shape), element)],
        operands=[
            source.value,
            tensor.EmptyOp(list(shape), element).result,
            *([ops.zero(element)] if has_zeros else []),
        ],
        attributes={
            "conv_compiler.operand": ir.StringAttr.get(operand),
            "strides": _i64s(pixel.stride for pixel in roles.pixels),
            "dilations": _i64s(pixel.dilation for pixel in roles.pixels),
            "static_kernel_size": _i64s(pixel.window for pixel in roles.pixels),
            "static_offsets": _i64s(0 for _ in shape),
            "static_output_sizes": ir.ArrayAttr.get([_i64s(parts) for parts in sizes]),
            "batch_pos": _i64s([source.group_axis]),
            "m_pos": _i64s(pixel.axis for pixel in roles.pixels),
            "k_pos": _i64s(sorted(roles.k_axes)),
            "input_k_perm": _i64s(_column_slots(source, roles)),
            "output_perm": _i64s(order),
            "static_input_pad_low": _i64s(low),
            "static_input_pad_high": _i64s(high),
            "static_output_pad_low": _i64s(0 for _ in extra if any(extra)),
            "static_output_pad_high": _i64s(extra if any(extra) else ()),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                [1, 1, 0, 0, 0, 0, 0, 0, 0, int(has_zeros)]
            ),
        },
    )
    result: ir.Value = op.results[0]
    return result


def _axis(pixel: PixelAxis) -> int:
    return pixel.axis


def _column_slots(source: Source, roles: _Roles) -> list[int]:
    """For each coordinate of K, in `k_order`, where IREE looks.

    It walks the tensor's axes but the group's; the n-th of the pixel axes it meets takes the window
    offset of the n-th pixel, whichever axis that one is on.
    """
    slots = [axis for axis in range(source.rank) if axis != source.group_axis]
    given = [pixel.axis for pixel in roles.pixels]
    met = [slots.index(axis) for axis in sorted(given)]
    return [
        met[given.index(axis)] if axis in given else slots.index(axis) for axis in roles.k_order
    ]


def _i64s(values: Iterable[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))
