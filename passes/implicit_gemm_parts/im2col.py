# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operands of an implicit GEMM: `iree_linalg_ext.im2col` of a tensor, read where it lies.

An operand has the axes [g, summed..., columns...]: groups, one or two axes of pixels, and one or
two of columns (window taps and channels). Semantics of the op: IREE's
`compiler/src/iree/compiler/Dialect/LinalgExt/IR/LinalgExtOps.td`, Im2colOp.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.gather_source import PixelAxis, Source

IM2COL = "iree_linalg_ext.im2col"
_PAD_LOW, _PAD_HIGH = "static_output_pad_low", "static_output_pad_high"
_SEGMENTS = "operandSegmentSizes"


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """What an operand's columns are made of: channels, the tensor's unit axes that nothing else
    names, and the taps: on an axis of their own (`is_apart`), or beside the channels."""

    channels: int
    units: tuple[int, ...]
    is_apart: bool
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
    """Whether the innermost summed loop walks the tensor's innermost axis, and no window does.

    A tensor without windows is read so along the batch alone, which other directions have for
    channels (`along_gemm_k`): a weight gradient's pixels are read along its channels.
    """
    inner = _innermost(source)
    alone = all(pixel.size == 1 for pixel in source.summed[-1] if pixel is not inner)
    windows = any(not pixel.is_plain for pixel in source.pixels)
    along = windows or inner.axis == source.batch_axis
    return alone and along and inner.is_plain and inner.axis == source.rank - 1


def _innermost(source: Source) -> PixelAxis:
    """The innermost summed loop of more than one iteration, or the last of those there are."""
    part = source.summed[-1]
    return next((pixel for pixel in reversed(part) if pixel.size > 1), part[-1])


def _by_pixels(source: Source, columns: _Columns) -> _Roles:
    """Summed pixels as M, columns as K: read along channels."""
    taps, units = sorted(source.pixels, key=_axis), columns.units
    parts = [
        ([tap.window for tap in taps], [tap.axis for tap in taps]),
        ([columns.channels, *(1 for _ in units)], [source.channel_axis, *units]),
    ]
    if columns.channels_first:
        parts.reverse()
    sizes, order = [part[0] for part in parts], [axis for part in parts for axis in part[1]]
    return _Roles(
        pixels=source.pixels,
        m_sizes=[[pixel.size for pixel in part] for part in source.summed],
        k_axes=(source.channel_axis, *units),
        k_sizes=sizes if columns.is_apart else [[*sizes[0], *sizes[1]]],
        k_order=tuple(order),
    )


def _by_columns(source: Source, columns: _Columns) -> _Roles:
    """Columns as M, what is summed as K: read along the innermost summed loop.

    What a tap steps over is then a pixel's stride, and the other way round.
    """
    *outer, last_part = source.summed
    inner, units = _innermost(source), columns.units
    ones = [pixel for pixel in last_part if pixel is not inner]
    taps = sorted((pixel for pixel in source.pixels if pixel is not inner), key=_axis)
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
        m_sizes=_parted(extents, columns) if columns.is_apart else [extents],
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


def _parted(extents: list[int], columns: _Columns) -> list[list[int]]:
    """The extents of taps and of channels apart, in their order."""
    cut = 1 if columns.channels_first else len(extents) - 1
    return [extents[:cut], extents[cut:]]


def im2col(
    operand: str,
    source: Source,
    channels: int,
    shape: Sequence[int],
    *,
    is_apart: bool = False,
    channels_first: bool = False,
) -> ir.Value:
    """The operand of `shape`, zero where the source has nothing.

    It is tagged `conv_compiler.operand`, by which the scripts tell the two apart. Its columns are
    (taps, channels), taps in the order of the tensor's axes, on two axes where `is_apart`; or
    (channels, taps), for an operand that is read along gemm_k.
    """
    used = {source.group_axis, source.channel_axis, *(pixel.axis for pixel in source.pixels)}
    units = tuple(axis for axis in range(source.rank) if axis not in used)
    form = _by_columns if is_summed_innermost(source) else _by_pixels
    columns = _Columns(
        channels=channels, units=units, is_apart=is_apart, channels_first=channels_first
    )
    roles = form(source, columns)
    axes = _output_axes(source, roles, shape)
    element = ir.RankedTensorType(source.value.type).element_type
    is_padded = any((*source.pad_low, *source.pad_high))
    has_zeros = any(axes.extra) or is_padded
    op = ir.Operation.create(
        IM2COL,
        results=[ir.RankedTensorType.get(list(shape), element)],
        operands=[
            source.value,
            tensor.EmptyOp(list(shape), element).result,
            *([ops.zero(element)] if has_zeros else []),
        ],
        attributes={
            "conv_compiler.operand": ir.StringAttr.get(operand),
            **_walk_attributes(source, roles),
            **_output_attributes(axes),
            "static_input_pad_low": _i64s(source.pad_low if is_padded else ()),
            "static_input_pad_high": _i64s(source.pad_high if is_padded else ()),
            _SEGMENTS: ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0, 0, 0, 0, 0, int(has_zeros)]),
        },
    )
    result: ir.Value = op.results[0]
    return result


def lengthened(op: ir.Operation, axis: int, length: int) -> ir.Value:
    """The operand with so many elements on an axis, zeros behind those that it had; in place of the
    op that made it."""
    value: ir.Value = op.results[0]
    shape, element = ops.shape_of(value), ops.element_of(value)
    more = length - shape[axis]
    if not more:
        return value
    high = list(ir.DenseI64ArrayAttr(op.attributes[_PAD_HIGH])) or [0] * len(shape)
    shape[axis], high[axis] = length, high[axis] + more
    segments = list(ir.DenseI32ArrayAttr(op.attributes[_SEGMENTS]))
    made = ir.Operation.create(
        IM2COL,
        results=[ir.RankedTensorType.get(shape, element)],
        operands=[op.operands[0], tensor.EmptyOp(shape, element).result, ops.zero(element)],
        attributes={
            **{name: op.attributes[name] for name in op.attributes},
            _PAD_LOW: _i64s(0 for _ in shape),
            _PAD_HIGH: _i64s(high),
            _SEGMENTS: ir.DenseI32ArrayAttr.get([*segments[:-1], 1]),
        },
    )
    value.replace_all_uses_with(made.results[0])
    erase_if_dead(op)
    result: ir.Value = made.results[0]
    return result


class _OutputAxes(NamedTuple):
    """The op's axes: the group, M and K. `sizes` are the parts of each. `order` are the operand's
    axes by those of the op; `extra` the zeros behind each axis of the operand."""

    sizes: list[list[int]]
    order: list[int]
    extra: list[int]


def _output_axes(source: Source, roles: _Roles, shape: Sequence[int]) -> _OutputAxes:
    """The axes of an operand of `shape`."""
    sizes = [[ops.shape_of(source.value)[source.group_axis]], *roles.m_sizes, *roles.k_sizes]
    axes = list(range(len(sizes)))
    first_k = 1 + len(roles.m_sizes)
    order = [0, *axes[first_k:], *axes[1:first_k]] if roles.k_first else axes
    extra = [size - math.prod(sizes[axis]) for size, axis in zip(shape, order, strict=True)]
    return _OutputAxes(sizes, order, extra)


def _walk_attributes(source: Source, roles: _Roles) -> dict[str, ir.Attribute]:
    """How the op walks the source: its pixels, their windows, and what it gathers at each."""
    return {
        "strides": _i64s(pixel.stride for pixel in roles.pixels),
        "dilations": _i64s(pixel.dilation for pixel in roles.pixels),
        "static_kernel_size": _i64s(pixel.window for pixel in roles.pixels),
        "batch_pos": _i64s([source.group_axis]),
        "m_pos": _i64s(pixel.axis for pixel in roles.pixels),
        "k_pos": _i64s(sorted(roles.k_axes)),
        "input_k_perm": _i64s(_column_slots(source, roles)),
    }


def _output_attributes(axes: _OutputAxes) -> dict[str, ir.Attribute]:
    """Sizes, order and padding of the operand."""
    has_extra = any(axes.extra)
    return {
        "static_offsets": _i64s(0 for _ in axes.extra),
        "static_output_sizes": ir.ArrayAttr.get([_i64s(parts) for parts in axes.sizes]),
        "output_perm": _i64s(axes.order),
        _PAD_LOW: _i64s(0 for _ in axes.extra if has_extra),
        _PAD_HIGH: _i64s(axes.extra if has_extra else ()),
    }


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
