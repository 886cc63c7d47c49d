# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel whose windows are kept in LDS (`passes/wgmma_windows.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, scf

from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    in_32_bits,
    linear,
    number,
)
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import pointer
from conv_compiler.passes.wgmma_parts.executable import dispatched, shared, workgroup_id
from conv_compiler.passes.wgmma_parts.kernel import FLOAT
from conv_compiler.passes.wgmma_parts.rewriting import Replaced
from conv_compiler.passes.wgmma_parts.sizes import WARP_GROUP
from conv_compiler.passes.wgmma_parts.stores import (
    Line,
    Place,
    in_memory,
    row_words,
    where,
    widest,
)
from conv_compiler.passes.wgmma_parts.wave_stores import WaveStore
from conv_compiler.passes.wgmma_parts.window_copies import (
    Corner,
    clear_last_weights,
    copy_weights,
    copy_window,
)
from conv_compiler.passes.wgmma_parts.window_products import Products
from conv_compiler.passes.wgmma_parts.window_sizes import WindowSizes

KERNEL = "wgmma_windows"


class WindowKernel:
    """The kernel of one problem."""

    def __init__(self, sizes: WindowSizes) -> None:
        self.sizes = sizes
        self.tiles = sizes.tile.tiles(sizes.batch)

    def result(self, module: ir.Module, found: Replaced) -> ir.Value:
        """The result, by an op on the sums where there is one."""

        def body(memory: list[ir.Value], out: ir.Value) -> None:
            self._write(
                memory[:2],
                Line(out=out, op=found.epilogue, extra=in_memory(found.extra, memory[2:])),
            )

        inputs = [*found.operands, *found.tensors]
        return dispatched(module, KERNEL, "contraction", self.grid, inputs, found.type, body)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups along each axis. Those of a tile are adjacent: each pixel that they read and
        store is then a whole line of memory."""
        return self.sizes.workgroups * self.blocks, 1, 1

    @property
    def blocks(self) -> int:
        """Workgroups of a tile: one for so many merged groups."""
        return self.sizes.groups // self.sizes.merged_groups

    def lds_floats(self, is_narrow: bool) -> int:
        """LDS of all windows, of the weights, and of the sums of 64 rows of each wave group."""
        sizes = self.sizes
        operands = sizes.stages * sizes.tile.window_bytes + sizes.tile.weight_bytes
        sums = sizes.wave_groups * ptx.ROWS * row_words(sizes.tile.columns, is_narrow)
        return operands // FLOAT + sums

    def _write(self, memory: Sequence[ir.Value], line: Line) -> None:
        sizes, tile = self.sizes, self.sizes.tile
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        first, group = cut(in_32_bits(workgroup_id(0)), [1, self.blocks])
        weights_at = sizes.stages * tile.window_bytes
        store = WaveStore(
            columns=tile.columns,
            width=math.gcd(widest(line.element), tile.phase_columns),
            thread=thread,
            behind=(weights_at + tile.weight_bytes) // FLOAT,
            line=line,
        )
        buffer = shared(self.lds_floats(store.is_narrow), ptx.LINE)
        lds = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(buffer)).result
        own = arith.DivUIOp(thread, number(WARP_GROUP)).result
        patch = linear(own, tile.own_patches)
        element = str(ir.MemRefType(memory[0].type).element_type)
        products = Products(sizes, element, lds, weights_at, patch)

        def copy(tile_: ir.Value, stage: ir.Value) -> None:
            to = linear(stage, tile.window_bytes, lds)
            copy_window(sizes, memory[0], to, thread, self._corner(tile_), group)
            ptx.close_copies()

        def compute(tile_: ir.Value, stage: ir.Value) -> None:
            sums = products.sums(linear(stage, tile.window_bytes))
            place = self._place(self._corner(tile_), group, linear(patch, ptx.ROWS))
            store.write(buffer, sums, place)

        clear_last_weights(sizes, buffer, weights_at, thread)
        copy_weights(sizes, memory[1], linear(lds, 1, weights_at), thread, group)
        copy(first, number(0))
        if sizes.stages == 1:
            ptx.wait_for_copies(0)
            gpu.BarrierOp()
            compute(first, number(0))
            return
        end, step = number(sizes.tiles), number(sizes.workgroups)
        loop = scf.ForOp(first, end, step, [number(0)])
        with ir.InsertionPoint(loop.body):
            tile_, (stage,) = loop.induction_variable, loop.inner_iter_args
            other = arith.SubIOp(number(1), stage).result
            ptx.wait_for_copies(0)
            gpu.BarrierOp()  # the window is there, and all products of the one before are done
            following = linear(tile_, 1, sizes.workgroups)
            with where(below(following, sizes.tiles)):
                copy(following, other)
            compute(tile_, stage)
            scf.YieldOp([other])

    def _corner(self, tile: ir.Value) -> Corner:
        image, *places = cut(tile, self.tiles)
        units = self.sizes.tile.units
        return Corner(
            linear(image, self.sizes.tile_images),
            [linear(at, extent) for at, extent in zip(places, units, strict=True)],
        )

    def _place(self, corner: Corner, group: ir.Value, first: ir.Value) -> Place:
        """Where rows of a tile lie, counted from a wave group's first one, of merged groups."""
        sizes, tile = self.sizes, self.sizes.tile
        pixel = sizes.groups * sizes.results
        outs = [slide.outs for slide in tile.slides]
        steps = [pixel * math.prod(outs[at:]) for at in range(len(outs) + 1)]

        def at(row: ir.Value, across: ir.Value) -> tuple[ir.Value, ir.Value | None]:
            patch, inner = cut(arith.AddIOp(first, row).result, [1, ptx.ROWS])
            image, depth, *patches = cut(patch, tile.patches)
            extents = (tile.patch_rows, tile.patch_columns)
            inside = cut(inner, extents)
            units = [depth, *map(linear, patches, extents, inside)]
            phase, column = cut(across, [1, tile.phase_columns])
            image = linear(image, 1, corner.image)
            found = linear(group, tile.phase_columns, linear(image, steps[0], column))
            tests = [below(image, sizes.batch) if sizes.batch % tile.images else None]
            for unit, start, own, slide, step in zip(
                units, corner.units, cut(phase, tile.phases), tile.slides, steps[1:], strict=True
            ):
                place = linear(linear(unit, 1, start), slide.phases, own)
                tests.append(below(place, slide.outs))
                found = linear(place, step, found)
            return found, both(*tests)

        return at
