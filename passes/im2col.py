# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a tagged convolution contraction as a batched GEMM on whole tiles.

Before: one linalg.generic with the loops (g, k, taps, c | n, pixels).
After, in a dispatch region of its own:

    A[g, q, r, m]      output gradient, m = k         (iree_linalg_ext.im2col, window 1)
    B[g, q, r, t, n]   input windows                  (iree_linalg_ext.im2col)
    P[g, m, t, n] = sum over (q, r) of A * B          role `contraction`

and behind it the weight gradient, each element from its place in P: role `placement`.

With `taps_in_rows` image and output gradient change roles: A has windows of the gradient, so that m
is (taps, k), and B has single image pixels, over which the sum runs. The image is then read once
for each tile of those rows instead of once a tap.

With `merged_groups` that many neighbouring groups are one: their channels lie side by side in
memory and fill an instruction that those of one would leave nearly empty. P then holds what each
group's gradient makes of each group's image, and the placement takes the blocks on the diagonal.

gemm_k is (q, r): the summed loops `outside` make q, those `inside` make r, of which a tile is
brought to LDS at once; with none outside there is no q, and r is all of gemm_k. The columns are
(t, n): taps and channels where `taps_outside`, else there is no t and n is both. An iteration of a
workgroup's loop over q has one pixel, and a workgroup one t: arithmetic on them is scalar. With
`channels_outside` t are the channels and n the taps.

Sizes are rounded up to whole tiles; what is added reads as zero and is sliced off P. The output
gradient is operand 0: IREE 3.13 miscompiles the other order on CUDA (a contraction whose operand 0
carries the last result dimension).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.build.bwd_weight import BATCH_CHUNKS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction, find_contraction
from conv_compiler.passes.implicit_gemm_parts.direct_store import stored_axes, unfit
from conv_compiler.passes.implicit_gemm_parts.im2col import im2col
from conv_compiler.passes.implicit_gemm_parts.operands import (
    cut_batch,
    gradient,
    gradient_windows,
    image,
    image_windows,
    merge_groups,
)
from conv_compiler.passes.implicit_gemm_parts.placement import (
    diagonal,
    extracted,
    mirrored,
    placed,
)
from conv_compiler.passes.implicit_gemm_parts.reversed_taps import reversed_weight
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import find_epilogue


def _ceil(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class Im2col:
    """Options: the workgroup tile (elements), and which loops make gemm_k, rows and columns.

    `outside` and `inside` name every summed loop (n, and ho, wo ...) once, outermost first; both
    empty stand for all of them inside, in the payload's order; with `taps_in_rows` they are loops
    over image pixels. `no` outside cuts the batch into chunks of `tile_k` images, of which it must
    be a whole number. `tile_k` is what r is rounded up to. `merged_groups` divides the groups,
    whose axes lie next to the channels'; not with `taps_in_rows`. With `columns_as_stored` taps and
    channels have the order of the result, where they must be side by side; with neither of the two.
    With `reversed_taps` the output gradient is read from what a region makes it of, which only
    reverses the order of its pixels; with none of the three, and no chunks.
    """

    name: ClassVar[str] = "im2col"
    tile_m: int
    tile_n: int
    tile_k: int
    outside: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    taps_outside: bool = False
    channels_outside: bool = False
    taps_in_rows: bool = False
    merged_groups: int = 1
    columns_as_stored: bool = False
    reversed_taps: bool = False

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none with these loops."""
        with module.context, ir.Location.unknown():
            conv = find_contraction(module)
            channels_first = self._channels_first(conv)
            # Where the epilogue stands, so that a kernel that runs it has its operands.
            with ir.InsertionPoint(find_epilogue(conv.op) or conv.op):
                product = self._region(merge_groups(conv, self.merged_groups), channels_first)
                weight = self._placement(conv, product, channels_first)
            conv.op.results[0].replace_all_uses_with(weight)
            erase_if_dead(conv.op)

    def _channels_first(self, conv: Contraction) -> bool:
        """Whether the columns are (channels, taps)."""
        if self.channels_outside:
            return True
        if not self.columns_as_stored:
            return False
        if self.taps_in_rows or self.merged_groups > 1:
            raise unfit()
        sizes = dict(zip(conv.weight_order, ops.shape_of(conv.op.results[0]), strict=True))
        return stored_axes(sizes, self.taps_outside).channels_first

    def _rows(self, conv: Contraction) -> int:
        """Extent of m."""
        return conv.gemm_m * (math.prod(conv.taps) if self.taps_in_rows else 1)

    def _columns(self, conv: Contraction) -> list[int]:
        """Extents of t, where there is one, and n."""
        taps = 1 if self.taps_in_rows else math.prod(conv.taps)
        if self.channels_outside:
            return [conv.channels, taps]
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

    def _region(self, conv: Contraction, channels_first: bool) -> ir.Value:
        """The dispatch region that computes P[g, m, t, n]."""
        if BATCH_CHUNKS in self.outside:
            conv = cut_batch(conv, self.tile_k)
        summed = self._summed(conv)
        *taps, n = self._columns(conv)
        m, columns = _ceil(self._rows(conv), self.tile_m), [*taps, _ceil(n, self.tile_n)]
        pixels = conv.image_pixels if self.taps_in_rows else conv.pixels
        lengths = [math.prod(pixels[i] for i in part) for part in summed]
        lengths[-1] = _ceil(lengths[-1], self.tile_k)
        type = ir.RankedTensorType.get([conv.groups, m, *columns], conv.accumulator)
        region = dispatches.dispatch_region(type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            if self.reversed_taps:
                conv = replace(conv, gradient=reversed_weight(conv.gradient))
            of_gradient, of_image = (
                (gradient_windows, image) if self.taps_in_rows else (gradient, image_windows)
            )
            a = im2col("a", of_gradient(conv, summed), conv.gemm_m, [conv.groups, *lengths, m])
            b = im2col(
                "b",
                of_image(conv, summed),
                conv.channels,
                [conv.groups, *lengths, *columns],
                is_apart=self.taps_outside or self.channels_outside,
                channels_first=channels_first,
            )
            loops = 2 + len(columns) + len(lengths)
            group, row, *rest = (ir.AffineDimExpr.get(i) for i in range(loops))
            column, k = rest[: len(columns)], rest[len(columns) :]
            product = ops.generic(
                [a, b],
                ops.filled(type.shape, conv.accumulator),
                [[group, *k, row], [group, *k, *column], [group, row, *column]],
                loops,
                len(lengths),
                ops.multiply_add,
                {ROLE: ir.StringAttr.get("contraction")},
            )
            dispatches.dispatch_return(product)
        result: ir.Value = region.results[0]
        return result

    def _placement(self, conv: Contraction, product: ir.Value, channels_first: bool) -> ir.Value:
        """The weight gradient from P."""
        if self.taps_in_rows:
            return extracted(conv, product, mirrored)
        if self.merged_groups > 1:
            return extracted(conv, product, diagonal(self.merged_groups, self.taps_outside))
        columns = ops.leading(product, [conv.groups, self._rows(conv), *self._columns(conv)])
        columns = ops.merge_axes(columns, 2, len(self._columns(conv)))
        return placed(conv, columns, channels_first)
