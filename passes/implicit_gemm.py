"""Rewrite a tagged convolution contraction as a batched GEMM on whole tiles, split over gemm_k.

Before: one linalg.generic with the loops (g, k, taps, c | n, pixels).
After, in a dispatch region of its own:

    A[g, q, r, m]      output gradient, m = k         (iree_linalg_ext.im2col, window 1)
    B[g, q, r, t, n]   input windows                  (iree_linalg_ext.im2col)
    P[s, g, m, t, n] = sum over the (q, r) of part s: A * B     role `contraction`

With `taps_in_rows` image and output gradient change roles: A has windows of the gradient, so that m
is (taps, k), and B has single image pixels, over which the sum runs. The image is then read once
for each tile of those rows instead of once a tap.

With `merged_groups` that many neighbouring groups are one: their channels lie side by side in
memory and fill an instruction that those of one would leave nearly empty. P then holds what each
group's gradient makes of each group's image, and the sum over s reads the blocks on the diagonal.

gemm_k is (q, r): the summed loops `outside` make q, those `inside` make r, of which a tile is
brought to LDS at once; with none outside there is no q, and r is all of gemm_k. The columns are
(t, n): taps and channels where `taps_outside`, else there is no t and n is both. A trip of a
workgroup's loop over q has one pixel, and a workgroup one t: arithmetic on them is scalar.

Outside the region is the sum over s in rising order, which also brings the columns to the
weight's axis order: role `reduction`. Sizes are rounded up to whole tiles; what is added reads as
zero and is sliced off P. The output gradient is operand 0: IREE 3.13 miscompiles the other order
on CUDA (a contraction whose operand 0 carries the last result dimension).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.loop_nest import erase_if_dead
from conv_compiler.passes.contraction import Contraction, find_contraction
from conv_compiler.passes.im2col import PixelAxis, Source, behind_unit_axis, im2col, merge_pixels
from conv_compiler.schedule import ROLE


def _ceil(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class ImplicitGemm:
    """Options: the workgroup tile (elements), parts of gemm_k, and how gemm_k and columns are cut.

    `outside` and `inside` name every summed loop (n, and ho, wo ...) once, outermost first; both
    empty stand for all of them inside, in the payload's order; with `taps_in_rows` they are loops
    over image pixels. `tile_k` is what r is rounded up to. `merged_groups` divides the groups,
    whose axes lie next to the channels'; not with `taps_in_rows`.
    """

    name: ClassVar[str] = "implicit-gemm"
    tile_m: int
    tile_n: int
    tile_k: int
    split_k: int = 1
    outside: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    taps_outside: bool = False
    taps_in_rows: bool = False
    merged_groups: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none with these loops."""
        with module.context, ir.Location.unknown():
            conv = find_contraction(module)
            epilogue = _epilogue(conv.op)
            last = epilogue or conv.op
            with ir.InsertionPoint(last):
                partials = self._region(_merged(conv, self.merged_groups))
                weight = self._reduction_region(conv, epilogue, partials)
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)

    def _rows(self, conv: Contraction) -> int:
        """Extent of m."""
        return conv.gemm_m * (math.prod(conv.taps) if self.taps_in_rows else 1)

    def _columns(self, conv: Contraction) -> list[int]:
        """Extents of t, where there is one, and n."""
        taps = 1 if self.taps_in_rows else math.prod(conv.taps)
        return [taps, conv.channels] if self.taps_outside else [taps * conv.channels]

    def _summed(self, conv: Contraction) -> tuple[tuple[int, ...], ...]:
        """Positions in `conv.pixels` of the loops of q (where there are any) and of r."""
        names = conv.pixel_loops
        outside, inside = self.outside, self.inside or names
        if sorted((*outside, *inside)) != sorted(names):
            raise UnsupportedStrategy(
                f"summed loops {outside} outside, {inside} inside: not those of the problem; "
                f"name {', '.join(names)} once each"
            )
        parts = tuple(tuple(names.index(loop) for loop in part) for part in (outside, inside))
        return tuple(part for part in parts if part)

    def _region(self, conv: Contraction) -> ir.Value:
        """The dispatch region that computes P[s, g, m, t, n]."""
        summed = self._summed(conv)
        *taps, n = self._columns(conv)
        m, columns = _ceil(self._rows(conv), self.tile_m), [*taps, _ceil(n, self.tile_n)]
        # The outer summed axis is the one that is cut into parts. A part is a loop at least.
        pixels = conv.image_pixels if self.taps_in_rows else conv.pixels
        lengths = [math.prod(pixels[i] for i in part) for part in summed]
        lengths[-1] = _ceil(lengths[-1], self.tile_k)
        part = -(-lengths[0] // self.split_k)
        part = _ceil(part, self.tile_k) if len(lengths) == 1 else max(part, 2)
        lengths[0] = part * self.split_k
        type = ir.RankedTensorType.get([self.split_k, conv.groups, m, *columns], conv.accumulator)
        region = ops.dispatch_region(type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            of_gradient, of_image = (
                (_gradient_windows, _image) if self.taps_in_rows else (_gradient, _image_windows)
            )
            operands = (
                im2col("a", of_gradient(conv, summed), conv.gemm_m, [conv.groups, *lengths, m]),
                im2col(
                    "b",
                    of_image(conv, summed),
                    conv.channels,
                    [conv.groups, *lengths, *columns],
                    taps_outside=self.taps_outside,
                ),
            )
            # [g, q or r, ...] -> [g, s, part of q or r, ...]
            a, b = (ops.split_axis(x, 1, (self.split_k, part)) for x in operands)
            loops = 3 + len(columns) + len(lengths)
            group, row = ir.AffineDimExpr.get(1), ir.AffineDimExpr.get(2)
            s, *rest = (ir.AffineDimExpr.get(i) for i in range(loops) if i not in (1, 2))
            column, k = rest[: len(columns)], rest[len(columns) :]
            product = ops.generic(
                [a, b],
                ops.filled(type.shape, conv.accumulator),
                [[group, s, *k, row], [group, s, *k, *column], [s, group, row, *column]],
                loops,
                len(lengths),
                ops.multiply_add,
                {ROLE: ir.StringAttr.get("contraction")},
            )
            ops.dispatch_return(product)
        result: ir.Value = region.results[0]
        return result

    def _reduction_region(
        self, conv: Contraction, epilogue: ir.Operation | None, partials: ir.Value
    ) -> ir.Value:
        """The weight gradient from P: one dispatch that also runs the epilogue, or a mere view."""
        whole = [self.split_k, conv.groups, self._rows(conv), *self._columns(conv)]

        def taps_apart() -> ir.Value:
            columns = ops.merge_axes(ops.leading(partials, whole), 3, len(whole) - 3)
            return ops.split_axis(columns, 3, (*conv.taps, conv.channels))

        in_order = conv.weight_loops == conv.weight_order and ops.shape_of(partials) == whole
        extracted = self.taps_in_rows or self.merged_groups > 1
        if epilogue is None and in_order and self.split_k == 1 and not extracted:
            return ops.merge_axes(taps_apart(), 0, 2)
        region = ops.dispatch_region((epilogue or conv.op).results[0].type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            if self.taps_in_rows:
                weight = _reduce_extracted(conv, partials, _mirrored)
            elif self.merged_groups > 1:
                weight = _reduce_extracted(conv, partials, self._diagonal)
            else:
                weight = _reduce(conv, taps_apart(), self.split_k)
            if epilogue is not None:
                weight = _apply(epilogue, weight)
            ops.dispatch_return(weight)
        result: ir.Value = region.results[0]
        return result

    def _diagonal(self, conv: Contraction, loops: Mapping[str, ir.Value]) -> list[ir.Value]:
        """Where a weight lies in P[merged g, (g, k), (taps...), (g, c)] or the like."""
        merged = _constant(self.merged_groups)
        outer = arith.DivUIOp(loops["g"], merged).result
        block = (arith.RemUIOp(loops["g"], merged).result, self.merged_groups)
        taps = [
            (loops[name], extent)
            for name, extent in zip(conv.weight_loops[2:-1], conv.taps, strict=True)
        ]
        channel = [block, (loops["c"], conv.channels)]
        columns = [taps, channel] if self.taps_outside else [[*taps, *channel]]
        return [outer, *map(_linear, ([block, (loops["k"], conv.gemm_m)], *columns))]


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
        channel_axis=axes[2],
        summed=tuple(tuple(each[i] for i in part) for part in summed),
        pad_low=pads[0],
        pad_high=pads[1],
    )


def _plain(axes: tuple[int, ...], sizes: tuple[int, ...]) -> Iterable[PixelAxis]:
    return (PixelAxis(axis=axis, size=size) for axis, size in zip(axes, sizes, strict=True))


def _gradient(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What A is read from: the output gradient, a pixel at a time."""
    axes = conv.gradient_axes
    return merge_pixels(_source(conv.gradient, axes, _plain(axes[1], conv.pixels), summed))


def _image(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What B is read from with taps in rows: the image, a pixel at a time."""
    axes = conv.image_axes
    return merge_pixels(_source(conv.image, axes, _plain(axes[1], conv.image_pixels), summed))


def _image_windows(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
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


def _gradient_windows(conv: Contraction, summed: tuple[tuple[int, ...], ...]) -> Source:
    """What A is read from with taps in rows: the output gradient, a window at a time.

    Image pixel p and tap t meet the output pixel p - t * dilation + pad_low: in a window over the
    gradient with the taps in reverse order. Strides must be 1, pads no wider than the window.
    """
    dilations, window = (1, *conv.dilations), (1, *conv.taps)
    low, high = ([0] * len(ops.shape_of(conv.gradient)) for _ in range(2))
    pixels = []
    for axis, of_image, size, dilation, taps in zip(
        conv.gradient_axes[1], conv.image_axes[1], conv.image_pixels, dilations, window, strict=True
    ):
        pixels.append(PixelAxis(axis=axis, size=size, dilation=dilation, window=taps))
        low[axis] = dilation * (taps - 1) - conv.pad_low[of_image]
        high[axis] = dilation * (taps - 1) - conv.pad_high[of_image]
    if min(*low, *high) < 0 or set(conv.strides) != {1}:
        raise UnsupportedStrategy(
            f"taps in rows, strides {conv.strides}: need stride 1 and pads within the window; "
            "use another form"
        )
    pads = (tuple(low), tuple(high))
    return behind_unit_axis(_source(conv.gradient, conv.gradient_axes, pixels, summed, pads))


def _epilogue(op: ir.Operation) -> ir.Operation | None:
    """The elementwise op that alone uses the contraction's result, if it is tagged as such."""
    users = [use.owner for use in op.results[0].uses]
    if len(users) != 1 or ROLE not in users[0].operation.attributes:
        return None
    user = users[0].operation
    return user if ir.StringAttr(user.attributes[ROLE]).value == "epilogue" else None


def _apply(epilogue: ir.Operation, weight: ir.Value) -> ir.Value:
    """A copy of the epilogue on another value, right behind it."""
    end = epilogue.clone()
    type = ir.RankedTensorType(end.results[0].type)
    empty = tensor.EmptyOp(type.shape, type.element_type).result
    end.operands[0] = weight
    end.operands[len(end.operands) - 1] = empty
    end.move_after(empty.owner)
    result: ir.Value = end.results[0]
    return result


def _reduce(conv: Contraction, partials: ir.Value, split_k: int) -> ir.Value:
    """The sum of P[s, g, m, taps..., c] over s in rising order, in the weight's axis order."""
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


def _reduce_extracted(
    conv: Contraction,
    partials: ir.Value,
    place: Callable[[Contraction, Mapping[str, ir.Value]], list[ir.Value]],
) -> ir.Value:
    """The sum over s in rising order of P[s, ...] at the `place` of each weight's loops.

    An index that falls where a loop rises, or depends on a loop twice, is no affine map that IREE
    tiles (it takes a tile's slice to begin at the tile's first index), so the elements are
    extracted; from the whole of P, padding included, for IREE 3.13 gathers from a slice as if it
    were contiguous.
    """
    order = conv.weight_order
    rank, parts = len(order), ops.shape_of(partials)[0]
    dims = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]

    def body(_: ir.Value, total: ir.Value) -> ir.Value:
        loops = {name: linalg.IndexOp(axis).result for axis, name in enumerate(order)}
        at = [linalg.IndexOp(rank).result, *place(conv, loops)]
        return ops.add(total, tensor.ExtractOp(partials, at).result)

    return ops.generic(
        [tensor.EmptyOp([parts], conv.accumulator).result],  # says how many parts there are
        ops.filled(ops.shape_of(conv.op.results[0]), conv.accumulator),
        [dims[rank:], dims[:rank]],
        rank + 1,
        1,
        body,
        {ROLE: ir.StringAttr.get("reduction")},
    )


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _linear(indices: Iterable[tuple[ir.Value, int]]) -> ir.Value:
    """The linear index of some (index, extent), outermost first."""
    at = _constant(0)
    for index, extent in indices:
        at = arith.AddIOp(arith.MulIOp(at, _constant(extent)).result, index).result
    return at


def _mirrored(conv: Contraction, loops: Mapping[str, ir.Value]) -> list[ir.Value]:
    """Where a weight lies in P[g, (taps..., k), c], taps reversed."""
    taps = [
        (arith.SubIOp(_constant(extent - 1), loops[name]).result, extent)
        for name, extent in zip(conv.weight_loops[2:-1], conv.taps, strict=True)
    ]
    return [loops["g"], _linear([*taps, (loops["k"], conv.gemm_m)]), loops["c"]]


def _merged(conv: Contraction, groups: int) -> Contraction:
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
