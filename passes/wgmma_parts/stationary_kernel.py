# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a forward pass or data gradient whose workgroups keep the weight in LDS.

Each goes through several tiles of rows. Copies of the next tile's source are on their way while the
sums of one are stored, and the weight is read once a workgroup, not once a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf

from conv_compiler.passes.depthwise_parts.arithmetic import cut, in_32_bits, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import lds_place, pointer
from conv_compiler.passes.wgmma_parts.executable import shared, workgroup_id
from conv_compiler.passes.wgmma_parts.kernel import FLOAT
from conv_compiler.passes.wgmma_parts.main_loop import Sums, is_below, of_groups, turned
from conv_compiler.passes.wgmma_parts.pixel_copies import (
    PIECES,
    Along,
    ResultRows,
    Source,
    SourceRows,
)
from conv_compiler.passes.wgmma_parts.pixel_kernel import PixelKernel
from conv_compiler.passes.wgmma_parts.products import Products
from conv_compiler.passes.wgmma_parts.sizes import WAVE
from conv_compiler.passes.wgmma_parts.stores import Line, row_words, where
from conv_compiler.passes.wgmma_parts.taps import Taps
from conv_compiler.passes.wgmma_parts.wave_stores import OWN_ROWS, WaveStore

# Stores the sums of the workgroup's so many-th tile of rows.
Keep = Callable[[ir.Value, Sums], None]
# Starts the copies of a tile of gemm_k of the workgroup's so many-th tile of rows, to a stage.
CopyOf = Callable[[ir.Value, int, ir.Value], None]


class StationaryKernel(PixelKernel):
    """The kernel of one problem whose source is read as it lies (`PixelSizes.row_workgroups`)."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups along each axis."""
        return self.sizes.row_workgroups * self.column_tiles, 1, self.sizes.groups

    @property
    def k_tiles(self) -> int:
        """Tiles of gemm_k, all of which LDS has of the weight."""
        return self.sizes.k_tiles((0, 0, 0))

    def lds_floats(self, *, is_narrow: bool) -> int:
        """LDS of a workgroup: stages of the source, the weight, and the sums."""
        sizes = self.sizes
        waves = sizes.threads // WAVE
        return self._operand_floats + waves * OWN_ROWS * row_words(sizes.columns, is_narrow)

    @property
    def _operand_floats(self) -> int:
        sizes = self.sizes
        of_source, of_weight = sizes.stage_steps
        return (sizes.stages * of_source + self.k_tiles * of_weight) // FLOAT

    def _write(self, memory: Sequence[ir.Value], line: Line) -> None:
        sizes = self.sizes
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        x, group = (in_32_bits(workgroup_id(axis)) for axis in (0, 2))
        share, column_tile = cut(x, [sizes.row_workgroups, self.column_tiles])
        column = linear(column_tile, sizes.tile_n)
        own = arith.DivUIOp(thread, number(PIECES)).result
        piece = arith.AndIOp(thread, number(PIECES - 1)).result
        phase = [number(0) for _ in sizes.phases]
        along = Along(sizes, Taps(sizes.slides, sizes.taps, phase), piece)
        is_along = sizes.weight_along_k
        weight = (ResultRows if is_along else SourceRows)(along, memory[1], column, own, group)
        is_narrow = line.narrows(self.width_of(line))
        words = self.lds_floats(is_narrow=is_narrow)
        lds = shared(words, ptx.SWIZZLED_LINES * ptx.LINE, sizes.by.sums)
        start = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(lds)).result
        place = linear(lds_place(thread), 1, start)
        element = str(ir.MemRefType(memory[0].type).element_type)
        products = of_groups(sizes)(sizes, element, start, thread, (True, is_along))
        of_source, of_weight = sizes.stage_steps

        def row_of(tile: ir.Value) -> ir.Value:
            return linear(linear(tile, sizes.row_workgroups, share), sizes.tile_m)

        def copy(tile: ir.Value, k: int, stage: ir.Value) -> None:
            source = Source(along, memory[0], row_of(tile), own, group)
            source.tile(number(k), linear(stage, of_source, place))

        store = WaveStore(
            columns=sizes.columns,
            width=self.width_of(line),
            thread=thread,
            behind=self._operand_floats,
            line=line,
        )

        def keep(tile: ir.Value, sums: Sums) -> None:
            row, right = linear(products.group_row, 1, row_of(tile)), products.column
            column_ = linear(right, 1, column)
            store.write(lds, sums, self.place_of(phase, (number(0), group, row, column_)))

        for k in range(self.k_tiles):
            weight.tile(number(k), linear(place, 1, sizes.b_shift + k * of_weight))
        left = linear(share, -1, self.row_tiles + sizes.row_workgroups - 1)
        count = arith.DivUIOp(left, number(sizes.row_workgroups)).result
        self._each_tile(products, count, copy, keep)

    def _each_tile(self, products: Products, count: ir.Value, copy: CopyOf, keep: Keep) -> None:
        """Multiply so many tiles of rows, and keep the sums of each."""
        sizes, steps = self.sizes, self.k_tiles
        ahead = sizes.stages - sizes.by.stages_behind

        def start_copy(tile: ir.Value, behind: int, stage: ir.Value) -> None:
            """Copies of the tile of gemm_k that is so many behind the first one of a tile."""
            tiles, k = divmod(behind, steps)
            later = linear(tile, 1, tiles)
            with where(is_below(later, count) if tiles else None):
                copy(later, k, stage)
            ptx.close_copies()

        for behind in range(ahead):
            start_copy(number(0), behind, number(behind))
        loop = scf.ForOp(number(0), count, number(1), [number(0)])
        with ir.InsertionPoint(loop.body):
            (stage,) = loop.inner_iter_args
            sums = products.zeros()
            for k in range(steps):
                ptx.wait_for_copies(ahead - 1)
                gpu.BarrierOp()
                sums = products.start(sums, stage, number(k))
                free = turned(linear(stage, 1, ahead), sizes.stages)
                start_copy(loop.induction_variable, k + ahead, free)
                sums = products.done(sums, 1)
                stage = turned(linear(stage, 1, 1), sizes.stages)
            keep(loop.induction_variable, products.done(sums, 0))
            scf.YieldOp([stage])
