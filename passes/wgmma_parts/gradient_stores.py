# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a wave's sums of a weight gradient by windows are stored.

Lane l has of each product two columns, 2 (l mod 4) and the next, of rows l / 4 and l / 4 + 8. So
eight lanes have adjacent source channels, which are 32 bytes of partial sums where these are
adjacent in the weight. The sums are few beside the operands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts.gradient_products import GradientProducts, Sums
from conv_compiler.passes.wgmma_parts.stores import PAIR, Line, where
from conv_compiler.problem.gradient_tiles import PIECE, GradientTile, Row


@dataclass(frozen=True, kw_only=True)
class GradientStore:
    """The store of the sums of `products`. A group of the tile has `joined` groups of `conv`."""

    conv: Contraction
    tile: GradientTile
    joined: int
    products: GradientProducts
    out: ir.Value

    def write(self, sums: Sums, part: ir.Value, block: ir.Value) -> None:
        """Store a wave's sums of a part, and of the block of merged groups of that number."""
        conv, tile, products = self.conv, self.tile, self.products
        steps = conv.weight_steps
        first = linear(block, tile.merged_groups, products.group)
        start = linear(
            first,
            self.joined * steps["g"],
            linear(part, math.prod(conv.weight_sizes.values())),
        )
        row, column = cut(products.lane, [1, 4])
        for group in range(tile.wave_groups):
            of_group = linear(start, 1, group * self.joined * steps["g"])
            for pair, rows in enumerate(tile.rows):
                for piece in range(tile.group_pieces):
                    own = sums[products.place(group, pair, piece)]
                    for half, one in enumerate(rows):
                        if one is not None:
                            values = own[PAIR * half : PAIR * half + PAIR]
                            self._pair(values, of_group, one, row, (piece, column))

    def _pair(
        self,
        values: list[ir.Value],
        start: ir.Value,
        one: Row,
        row: ir.Value,
        columns: tuple[int, ir.Value],
    ) -> None:
        """Two adjacent columns of a row."""
        conv, tile = self.conv, self.tile
        steps = conv.weight_steps
        for name, tap in zip(conv.weight_loops[2:-1], tile.taps[one.tap], strict=True):
            start = linear(start, 1, tap * steps[name])
        of_source, source = self._within(linear(row, 1, one.piece * PIECE), conv.channels)
        start = linear(source, steps["c"], start)
        piece, column = columns
        first = linear(linear(self.products.piece, 1, piece), PIECE, linear(column, PAIR))
        for behind, value in enumerate(values):
            of_result, result = self._within(linear(first, 1, behind), conv.gemm_m)
            at, own = linear(result, steps["k"], start), None
            if of_source is not None and of_result is not None:
                own = arith.CmpIOp(arith.CmpIPredicate.eq, of_source, of_result).result
                at = linear(of_source, steps["g"], at)
            with where(own):
                Line(out=self.out).store([value], at)

    def _within(self, channel: ir.Value, channels: int) -> tuple[ir.Value | None, ir.Value]:
        """The number of a joined group, where there are several, and a channel of it."""
        if self.joined == 1:
            return None, channel
        of, own = cut(channel, [1, channels])
        return of, own
