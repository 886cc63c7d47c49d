# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a forward pass or data gradient whose last rows have smaller tiles.

The chip starts workgroups in the order of their numbers. The first ones are whole rounds of large
tiles; those behind them have the rest of the rows in tiles that fill the last round better.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import gpu, scf

from conv_compiler.passes.depthwise_parts.arithmetic import below, cut, in_32_bits, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.executable import shared, workgroup_id
from conv_compiler.passes.wgmma_parts.pixel_kernel import PixelKernel
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.stores import Line


class TailKernel(PixelKernel):
    """The kernel of one problem of one phase, part and group (`PixelSizes.tail`)."""

    def __init__(self, sizes: PixelSizes) -> None:
        super().__init__(sizes)
        self.kinds = [PixelKernel(one) for one in sizes.kinds]
        head, tail = self.kinds
        head.row_tiles = sizes.head_rows // sizes.tile_m
        tail.row_tiles -= sizes.head_rows // tail.sizes.tile_m

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups along each axis."""
        return sum(one.row_tiles * one.column_tiles for one in self.kinds), 1, 1

    def lds_floats(self, *, is_narrow: bool) -> int:
        """LDS of a workgroup, whichever kind of tile it has."""
        return max(one.lds_floats(is_narrow=is_narrow) for one in self.kinds)

    def _write(self, memory: Sequence[ir.Value], line: Line) -> None:
        head, tail = self.kinds
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        x = in_32_bits(workgroup_id(0))
        zero = number(0)
        phase = [zero for _ in self.sizes.phases]
        words = self.lds_floats(is_narrow=line.narrows(self.width_of(line)))
        lds = shared(words, ptx.SWIZZLED_LINES * ptx.LINE, self.sizes.by.sums)
        before = head.row_tiles * head.column_tiles
        behind = linear(x, 1, -before)
        branch = scf.IfOp(below(x, before), has_else=True)
        for block, kernel, at, first_row in (
            (branch.then_block, head, x, 0),
            (branch.else_block, tail, behind, self.sizes.head_rows),
        ):
            with ir.InsertionPoint(block):
                row_tile, column_tile = cut(at, [kernel.row_tiles, kernel.column_tiles])
                row = linear(row_tile, kernel.sizes.tile_m, first_row)
                column = linear(column_tile, kernel.sizes.tile_n)
                place = zero, zero, row, column
                kernel.write_tile(memory, line, thread, phase, place, lds)
                scf.YieldOp([])
