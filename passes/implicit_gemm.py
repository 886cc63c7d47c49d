"""Rewrite a tagged convolution contraction as a batched GEMM on whole tiles, split over gemm_k.

Before: one linalg.generic with the loops (g, k, taps, c | n, pixels).
After, in a dispatch region of its own:

    A[g, gemm_k, m]   output gradient, m = k                       (view, or im2col with window 1)
    B[g, gemm_k, n]   input windows,   n = (taps, c)               (iree_linalg_ext.im2col)
    P[s, g, m, n] = sum over the gemm_k of part s: A * B           role `contraction`

and, outside it, the sum over s in rising order, which also brings n to the weight's axis order:
role `reduction`. m, n and gemm_k are rounded up to whole tiles; what is added reads as zero and is
sliced off P. The output gradient is operand 0: IREE 3.13 miscompiles the other order on CUDA
(a contraction whose operand 0 carries the last result dimension).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.build import ops
from conv_compiler.loop_nest import erase_if_dead
from conv_compiler.passes.contraction import Contraction, find_contraction
from conv_compiler.schedule import ROLE


def _ceil(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _i64s(values: Sequence[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


@dataclass(frozen=True, kw_only=True)
class ImplicitGemm:
    """Options: the workgroup tile (elements) and the number of parts gemm_k is split into."""

    name: ClassVar[str] = "implicit-gemm"
    tile_m: int
    tile_n: int
    tile_k: int
    split_k: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module's one contraction; raises UnsupportedStrategy if it has none."""
        with module.context, ir.Location.unknown():
            contraction = find_contraction(module)
            epilogue = _epilogue(contraction.op)
            last = epilogue or contraction.op
            with ir.InsertionPoint(last):
                partials = self._region(contraction)
                weight = _reduction_region(contraction, epilogue, partials, self.split_k)
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)

    def _region(self, conv: Contraction) -> ir.Value:
        """The dispatch region that computes P[s, g, m, n]."""
        m, n = _ceil(conv.gemm_m, self.tile_m), _ceil(conv.gemm_n, self.tile_n)
        part = _ceil(-(-conv.gemm_k // self.split_k), self.tile_k)
        type = ir.RankedTensorType.get([self.split_k, conv.groups, m, n], conv.accumulator)
        region = ops.dispatch_region(type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            a = _gradient_operand(conv, part * self.split_k, m)
            b = _window_operand(conv, part * self.split_k, n)
            # [g, gemm_k, x] -> [g, s, part, x]
            a, b = (ops.split_axis(x, 1, (self.split_k, part)) for x in (a, b))
            s, g, i, j, k = (ir.AffineDimExpr.get(d) for d in range(5))
            product = ops.generic(
                [a, b],
                ops.filled(type.shape, conv.accumulator),
                [[g, s, k, i], [g, s, k, j], [s, g, i, j]],
                5,
                1,
                ops.multiply_add,
                {ROLE: ir.StringAttr.get("contraction")},
            )
            ops.dispatch_return(product)
        result: ir.Value = region.results[0]
        return result


def _gradient_operand(conv: Contraction, gemm_k: int, m: int) -> ir.Value:
    """A[g, gemm_k, m] from the output gradient."""
    source, axes, pixels = _merge_pixels(conv.gradient, conv.gradient_axes, conv.pixels)
    unit = [1] * len(pixels)
    return _im2col(
        "a",
        source,
        axes,
        strides=unit,
        dilations=unit,
        window=unit,
        pads=None,
        sizes=(conv.groups, pixels, conv.gemm_m),
        padded=(gemm_k, m),
    )


def _window_operand(conv: Contraction, gemm_k: int, n: int) -> ir.Value:
    """B[g, gemm_k, n] from the image."""
    source, axes, pixels = conv.image, conv.image_axes, conv.pixels
    strides, dilations, window = [1, *conv.strides], [1, *conv.dilations], [1, *conv.taps]
    pads: tuple[Sequence[int], Sequence[int]] | None = (conv.pad_low, conv.pad_high)
    if conv.is_pointwise:
        source, axes, pixels = _merge_pixels(source, axes, pixels)
        strides = dilations = window = [1] * len(pixels)
        pads = None
    elif axes[1][-1] == len(conv.pad_low) - 1 and (strides[-1], dilations[-1], window[-1]) != (
        1,
        1,
        1,
    ):
        # Channels first. IREE 3.13 would read along the innermost axis in vectors: where gemm_k is
        # one axis it looks at the batch's window, stride and dilation only, and finds them unit. A
        # unit axis behind it leaves nothing to vectorise.
        last = axes[1][-1]
        source = ops.split_axis(source, last, (ops.shape_of(source)[last], 1))
        pads = ((*conv.pad_low, 0), (*conv.pad_high, 0))
    return _im2col(
        "b",
        source,
        axes,
        strides=strides,
        dilations=dilations,
        window=window,
        pads=pads,
        sizes=(conv.groups, pixels, conv.channels),
        padded=(gemm_k, n),
    )


Axes = tuple[int, tuple[int, ...], int]


def _merge_pixels(
    source: ir.Value, axes: Axes, pixels: tuple[int, ...]
) -> tuple[ir.Value, Axes, tuple[int, ...]]:
    """The view in which neighbouring pixel axes are one: fewer divisions to find an address."""
    group, space, channel = axes
    merged_space, merged_pixels = [space[0]], [pixels[0]]
    removed: list[int] = []

    def moved(axis: int) -> int:
        return axis - sum(gone < axis for gone in removed)

    for axis, before, size in zip(space[1:], space, pixels[1:], strict=False):
        if axis == before + 1:
            source = ops.merge_axes(source, moved(merged_space[-1]), 2)
            merged_pixels[-1] *= size
            removed.append(axis)
        else:
            merged_space.append(axis)
            merged_pixels.append(size)

    new_axes = (moved(group), tuple(moved(axis) for axis in merged_space), moved(channel))
    return source, new_axes, tuple(merged_pixels)


def _im2col(
    operand: str,
    source: ir.Value,
    axes: tuple[int, tuple[int, ...], int],
    *,
    strides: list[int],
    dilations: list[int],
    window: list[int],
    pads: tuple[Sequence[int], Sequence[int]] | None,
    sizes: tuple[int, tuple[int, ...], int],
    padded: tuple[int, int],
) -> ir.Value:
    """One iree_linalg_ext.im2col with result [g, gemm_k, columns], zero where nothing is read.

    It is tagged `conv_compiler.operand`, by which the scripts tell the two apart.
    `axes` are the source's axes of (group, (batch, space...), channel) and `sizes` their extents
    in the GEMM; `padded` is the result's (gemm_k, columns).
    """
    group_axis, pixel_axes, channel_axis = axes
    groups, pixels, channels = sizes
    element = ir.RankedTensorType(source.type).element_type
    # What a column's coordinates (window, c) move along; an axis behind all others is a unit axis.
    column_axes = (*pixel_axes, channel_axis)
    rank = len(ops.shape_of(source))
    unit_axis = [rank - 1] if rank - 1 not in (*column_axes, group_axis) else []
    column_axes = (*column_axes, *unit_axis)
    shape = [groups, *padded]
    low, high = pads or ((), ())
    extra = [0, padded[0] - math.prod(pixels), padded[1] - math.prod(window) * channels]
    op = ir.Operation.create(
        "iree_linalg_ext.im2col",
        results=[ir.RankedTensorType.get(shape, element)],
        operands=[source, tensor.EmptyOp(shape, element).result, ops.zero(element)],
        attributes={
            "conv_compiler.operand": ir.StringAttr.get(operand),
            "strides": _i64s(strides),
            "dilations": _i64s(dilations),
            "static_kernel_size": _i64s(window),
            "static_offsets": _i64s([0, 0, 0]),
            "static_output_sizes": ir.ArrayAttr.get(
                [_i64s([groups]), _i64s(pixels), _i64s([*window, channels, *[1] * len(unit_axis)])]
            ),
            "batch_pos": _i64s([group_axis]),
            "m_pos": _i64s(pixel_axes),
            "k_pos": _i64s([channel_axis, *unit_axis]),
            "input_k_perm": _i64s([sorted(column_axes).index(axis) for axis in column_axes]),
            "output_perm": _i64s([0, 1, 2]),
            "static_input_pad_low": _i64s(low),
            "static_input_pad_high": _i64s(high),
            "static_output_pad_low": _i64s([0, 0, 0]),
            "static_output_pad_high": _i64s(extra),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
        },
    )
    result: ir.Value = op.results[0]
    return result


def _epilogue(op: ir.Operation) -> ir.Operation | None:
    """The elementwise op that alone uses the contraction's result, if it is tagged as such."""
    users = [use.owner for use in op.results[0].uses]
    if len(users) != 1 or ROLE not in users[0].operation.attributes:
        return None
    user = users[0].operation
    return user if ir.StringAttr(user.attributes[ROLE]).value == "epilogue" else None


def _reduction_region(
    conv: Contraction, epilogue: ir.Operation | None, partials: ir.Value, split_k: int
) -> ir.Value:
    """The weight gradient from P: one dispatch that also runs the epilogue, or a mere view of P."""
    whole = [split_k, conv.groups, conv.gemm_m, conv.gemm_n]
    as_weight = conv.weight_loops == conv.weight_order
    if epilogue is None and as_weight and split_k == 1 and ops.shape_of(partials) == whole:
        return ops.merge_axes(ops.split_axis(partials, 3, (*conv.taps, conv.channels)), 0, 2)
    region = ops.dispatch_region((epilogue or conv.op).results[0].type)
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        weight = _reduce(conv, ops.leading(partials, whole), split_k)
        if epilogue is not None:
            end = epilogue.clone()
            type = ir.RankedTensorType(end.results[0].type)
            end.operands[0] = weight
            end.operands[len(end.operands) - 1] = tensor.EmptyOp(
                type.shape, type.element_type
            ).result
            end.move_after(end.operands[len(end.operands) - 1].owner)
            weight = end.results[0]
        ops.dispatch_return(weight)
    result: ir.Value = region.results[0]
    return result


def _reduce(conv: Contraction, partials: ir.Value, split_k: int) -> ir.Value:
    """The sum of P[s, g, k, n] over s in rising order, in the weight's axis order."""
    partials = ops.split_axis(partials, 3, (*conv.taps, conv.channels))
    # P is [s, g, k, taps..., c]; the weight's loops come in the order of its axes.
    if split_k == 1:
        partials = ops.merge_axes(partials, 0, 2)
    rank = len(conv.weight_order)
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + (split_k > 1))]
    read = [dims[conv.weight_order.index(name)] for name in conv.weight_loops]
    return ops.generic(
        [partials],
        ops.filled(ops.shape_of(conv.op.results[0]), conv.accumulator),
        [[dims[-1], *read] if split_k > 1 else read, dims[:rank]],
        len(dims),
        int(split_k > 1),
        lambda part, total: ops.add(total, part) if split_k > 1 else part,
        {ROLE: ir.StringAttr.get("reduction")},
    )
