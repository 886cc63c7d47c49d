# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `pointwise-kernel` while it is written: workgroups, tiles of pixels, register
tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import constant, delinearized, loops, plus, times
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.passes.cpu_kernel.products import product_of
from conv_compiler.passes.cpu_kernel.shuffles import side_by_side
from conv_compiler.passes.direct_parts.block_weights import factor_in_all_lanes, packing_of_blocks
from conv_compiler.passes.direct_parts.packing import (
    in_all_lanes,
    loaded,
    stored,
    widened,
)
from conv_compiler.passes.direct_parts.regions import by_workgroups
from conv_compiler.problem.slides import even_tiles
from conv_compiler.targets.host import PAIR_INSTRUCTIONS
from conv_compiler.targets.limits import UNROLLED

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.direct_parts.pointwise_options import PointwiseOptions


class PointwiseTiles:
    """The kernel of one problem."""

    def __init__(self, options: PointwiseOptions, element: ir.Type) -> None:
        self.options, self.element = options, element
        self.sums = ir.VectorType.get([options.lanes], element)
        self.product = product_of(options.instruction or "fma", self.sums)
        self.steps = options.sources // self.product.factors
        self.share = options.pixels // options.pixel_shares
        self.channels = options.results // options.channel_shares

    def value(self, source: Operand, weight: Operand, result: Result) -> ir.Value:
        """The result in the form in which the program has it."""
        options = self.options
        packed = packing_of_blocks(
            options, options.block, options.instruction, weight, self.element
        ).region()
        self.source, self.flat, self.result = source, source.flat(), result
        self.extra = result.extra()
        grid = [options.batch, options.groups, options.channel_shares, options.pixel_shares]
        shape = [options.batch, options.groups * options.results, options.pixels]
        sizes = [1, self.channels, self.share]

        def workgroup(number: ir.Value, out: ir.Value) -> Piece:
            image, group, of_channels, of_pixels = delinearized(number, grid)
            channel = plus(times(group, options.results), times(of_channels, self.channels))
            pixel = times(of_pixels, self.share)
            base = plus(
                times(image, options.groups * options.sources * options.pixels),
                times(group, options.sources * options.pixels),
                pixel,
            )
            weights = times(channel, options.sources)
            firsts = self.firsts = [image, channel, pixel]
            piece = slice_of(out, firsts, sizes, sizes)
            return self.workgroup(piece, base, packed, weights), firsts, sizes

        element = ops.element_of(result.value)
        made = by_workgroups(shape, element, math.prod(grid), "contraction", workgroup)
        flat = ops.merge_axes(made, 0, len(shape))
        return ops.split_axis(flat, 0, ops.shape_of(result.value))

    def workgroup(
        self, piece: ir.Value, base: ir.Value, packed: ir.Value, weights: ir.Value
    ) -> ir.Value:
        """One workgroup's share: tiles of vectors, the last by itself where its last vector
        begins earlier."""
        lanes = self.options.lanes
        whole, rest = divmod(self.share, lanes)
        tiles = list(even_tiles(whole + (rest > 0), self.options.vectors))
        if self.options.on_stack:  # once for all tiles, or each kind would have room of its own
            most = max(size for _, size in tiles)
            self.copy = stack_tensor([self.steps * most * lanes], self.product.element)
        last = tiles.pop() if rest else None
        for size in sorted({size for _, size in tiles}, reverse=True):
            same = [first for first, count in tiles if count == size]

            def body(
                at: list[ir.Value], values: list[ir.Value], size: int = size, begin: int = same[0]
            ) -> list[ir.Value]:
                first = plus(times(at[0], size * lanes), constant(begin * lanes))
                places = [plus(first, constant(i * lanes)) for i in range(size)]
                return [self.tile(values[0], places, base, packed, weights)]

            piece = loops([len(same)], [piece], body)[0]
        if last:
            first, size = last
            begins = [(first + i) * lanes for i in range(size - 1)] + [self.share - lanes]
            piece = self.tile(piece, [constant(one) for one in begins], base, packed, weights)
        return piece

    def tile(
        self,
        piece: ir.Value,
        places: list[ir.Value],
        base: ir.Value,
        packed: ir.Value,
        weights: ir.Value,
    ) -> ir.Value:
        """The result channels of a share, of vectors of pixels that begin at some places."""
        options, block = self.options, self.options.block
        factors = self.factors(places, base)

        def of_block(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            first = plus(weights, times(at[0], block * options.sources))
            sums = self.summed(factors, packed, first, len(places))
            (out,) = values
            for row in range(block):
                channel = plus(times(at[0], block), constant(row))
                for number, place in enumerate(places):
                    value = self.finished(sums[row * len(places) + number], channel, place)
                    out = stored(value, out, [constant(0), channel, place])
            return [out]

        return loops([self.channels // block], [piece], of_block)[0]

    def finished(self, sums: ir.Value, channel: ir.Value, place: ir.Value) -> ir.Value:
        """Pixels of a channel behind the op on the sums; both are counted in the share."""
        options = self.options
        image, first, pixel = self.firsts
        row = plus(first, channel)
        of_result = plus(times(image, options.groups * options.results), row)
        at = plus(times(of_result, options.pixels), pixel, place)
        found = []
        for one in self.extra:
            read = in_all_lanes if one.per == "channel" else loaded
            found.append(one.read(read, {"element": at, "channel": row}, options.lanes))
        return self.result.finished(sums, found)

    def factors(
        self, places: list[ir.Value], base: ir.Value
    ) -> Callable[[ir.Value], list[ir.Value]]:
        """What gives the vectors of a step: of the stack, or where the source lies."""

        def in_place(step: ir.Value) -> list[ir.Value]:
            return [self.read(plus(base, place), step) for place in places]

        if not self.options.on_stack:
            return in_place
        lanes, size = self.options.lanes, len(places)

        def a_step(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (out,) = values
            for number, value in enumerate(in_place(at[0])):
                out = stored(
                    value, out, [plus(times(at[0], size * lanes), constant(number * lanes))]
                )
            return [out]

        (copied,) = loops([self.steps], [self.copy], a_step)

        def on_stack(step: ir.Value) -> list[ir.Value]:
            first = times(step, size * lanes)
            return [loaded(copied, plus(first, constant(i * lanes)), lanes) for i in range(size)]

        return on_stack

    def read(self, pixel: ir.Value, step: ir.Value) -> ir.Value:
        """A vector of pixels of the source channels of a step, as it is multiplied."""
        options, count = self.options, self.product.factors
        channel = plus(pixel, times(step, count * options.pixels))
        rows = [
            self.source.applied(
                loaded(self.flat, plus(channel, constant(i * options.pixels)), options.lanes)
            )
            for i in range(count)
        ]
        if count == 1:
            return widened(rows[0], self.element)
        element = ir.Type.parse(PAIR_INSTRUCTIONS[options.instruction].element)
        rows = [widened(row, element) for row in rows]
        return side_by_side(rows, self.product.element)

    def summed(
        self,
        factors: Callable[[ir.Value], list[ir.Value]],
        packed: ir.Value,
        first: ir.Value,
        size: int,
    ) -> list[ir.Value]:
        """The sums of a register tile: its channels, and vectors of pixels in each."""
        block, count = self.options.block, self.product.factors
        together = max(n for n in range(1, UNROLLED + 1) if self.steps % n == 0)
        zero = vector.BroadcastOp(self.sums, ops.zero(self.element)).result

        def some(at: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            sums = list(sums)
            for behind in range(together):
                step = plus(times(at[0], together), constant(behind))
                vectors = factors(step)
                here = plus(first, times(step, block * count))
                for row in range(block):
                    everywhere = factor_in_all_lanes(
                        packed, plus(here, constant(row * count)), self.product, self.options.lanes
                    )
                    for number, value in enumerate(vectors):
                        at_ = row * size + number
                        sums[at_] = self.product.add(sums[at_], everywhere, value)
            return sums

        return loops([self.steps // together], [zero] * (block * size), some)
