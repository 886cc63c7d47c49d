# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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
(t, n): taps and channels where `taps_outside`, else there is no t and n is both. An iteration of a
workgroup's loop over q has one pixel, and a workgroup one t: arithmetic on them is scalar.

Outside the region is the sum over s in rising order, which also brings the columns to the
weight's axis order: role `reduction`. Sizes are rounded up to whole tiles; what is added reads as
zero and is sliced off P. The output gradient is operand 0: IREE 3.13 miscompiles the other order
on CUDA (a contraction whose operand 0 carries the last result dimension).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.build.bwd_weight import BATCH_CHUNKS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction, find_contraction
from conv_compiler.passes.implicit_gemm_parts.direct_store import Store
from conv_compiler.passes.implicit_gemm_parts.im2col import im2col
from conv_compiler.passes.implicit_gemm_parts.operands import (
    cut_batch,
    gradient,
    gradient_windows,
    image,
    image_windows,
    merge_groups,
)
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import (
    apply_epilogue,
    diagonal,
    find_epilogue,
    mirrored,
    reduce_extracted,
    reduce_parts,
)


def _ceil(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class ImplicitGemm:
    """Options: the workgroup tile (elements), parts of gemm_k, and how gemm_k and columns are cut.

    `outside` and `inside` name every summed loop (n, and ho, wo ...) once, outermost first; both
    empty stand for all of them inside, in the payload's order; with `taps_in_rows` they are loops
    over image pixels. `no` outside cuts the batch into chunks of `tile_k` images, of which it must
    be a whole number. `tile_k` is what r is rounded up to. `merged_groups` divides the groups,
    whose axes lie next to the channels'; not with `taps_in_rows`. With `stores_result` there is no
    P: the region also runs the epilogue and has the result; for one part, whole tiles, and columns
    that are side by side in the result.
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
    stores_result: bool = False

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none with these loops."""
        with module.context, ir.Location.unknown():
            conv = find_contraction(module)
            epilogue = find_epilogue(conv.op)
            last = epilogue or conv.op
            with ir.InsertionPoint(last):
                if self.stores_result:
                    self._check_whole(conv)
                    weight = self._region(conv, Store.of(conv, epilogue, self.taps_outside))
                else:
                    partials = self._region(merge_groups(conv, self.merged_groups))
                    weight = self._reduction_region(conv, epilogue, partials)
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)

    def _check_whole(self, conv: Contraction) -> None:
        """Raise UnsupportedStrategy unless P would be the result's elements and no others."""
        rest = self._rows(conv) % self.tile_m or self._columns(conv)[-1] % self.tile_n
        if rest or self.split_k > 1 or self.taps_in_rows or self.merged_groups > 1:
            raise UnsupportedStrategy(
                f"result stored by the matrix kernel, tile {self.tile_m}x{self.tile_n}: needs one "
                "part, whole tiles, and neither taps in rows nor merged groups; leave it out"
            )

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

    def _region(self, conv: Contraction, store: Store | None = None) -> ir.Value:
        """The dispatch region that computes P[s, g, m, t, n], or what it is stored as."""
        if BATCH_CHUNKS in self.outside:
            conv = cut_batch(conv, self.tile_k)
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
        operands = store.operands() if store else []
        region = dispatches.dispatch_region(store.type if store else type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            of_gradient, of_image = (
                (gradient_windows, image) if self.taps_in_rows else (gradient, image_windows)
            )
            a, b = (
                im2col("a", of_gradient(conv, summed), conv.gemm_m, [conv.groups, *lengths, m]),
                im2col(
                    "b",
                    of_image(conv, summed),
                    conv.channels,
                    [conv.groups, *lengths, *columns],
                    taps_outside=self.taps_outside,
                    channels_first=store is not None and store.channels_first,
                ),
            )
            # [g, q or r, ...] -> [g, s, part of q or r, ...]
            a, b = (ops.split_axis(x, 1, (self.split_k, part)) for x in (a, b))
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
            dispatches.dispatch_return(store.apply(product, operands) if store else product)
        result: ir.Value = region.results[0]
        return store.whole(result) if store else result

    def _reduction_region(
        self, conv: Contraction, epilogue: ir.Operation | None, partials: ir.Value
    ) -> ir.Value:
        """The weight gradient from P: one dispatch that also runs the epilogue, or a mere view."""
        whole = [self.split_k, conv.groups, self._rows(conv), *self._columns(conv)]

        def taps_apart() -> ir.Value:
            columns = ops.merge_axes(ops.leading(partials, whole), 3, len(whole) - 3)
            return ops.split_axis(columns, 3, (*conv.taps, conv.channels))

        in_order = conv.weight_loops == conv.weight_order and ops.shape_of(partials) == whole
        # IREE 3.13 makes a slice of one element larger in rank than what it is cut from.
        single = math.prod(whole) == 1
        extracted = self.taps_in_rows or self.merged_groups > 1 or single
        if epilogue is None and in_order and self.split_k == 1 and not extracted:
            return ops.merge_axes(taps_apart(), 0, 2)
        region = dispatches.dispatch_region((epilogue or conv.op).results[0].type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            if self.taps_in_rows:
                weight = reduce_extracted(conv, partials, mirrored)
            elif extracted:
                place = diagonal(self.merged_groups, self.taps_outside)
                weight = reduce_extracted(conv, partials, place)
            else:
                weight = reduce_parts(conv, taps_apart(), self.split_k)
            if epilogue is not None:
                weight = apply_epilogue(epilogue, weight)
            dispatches.dispatch_return(weight)
        result: ir.Value = region.results[0]
        return result
