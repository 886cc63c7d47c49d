# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a weight gradient by wave groups (`passes/wgmma_gemm.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu

from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    in_32_bits,
    linear,
    number,
)
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import Copy, TapsCopy, lds_place, pointer
from conv_compiler.passes.wgmma_parts.executable import dispatched, shared, workgroup_id
from conv_compiler.passes.wgmma_parts.main_loop import multiplied
from conv_compiler.passes.wgmma_parts.products import Products
from conv_compiler.passes.wgmma_parts.sizes import BLOCK, Tiles, operands
from conv_compiler.passes.wgmma_parts.stores import Line, Store, pitch, widest

KERNEL = "wgmma_gemm"
FLOAT = 4  # bytes


class Kernel:
    """The kernel of one contraction."""

    def __init__(self, conv: Contraction, tiles: Tiles) -> None:
        self.conv, self.tiles = conv, tiles
        self.gradient, self.image = operands(conv)
        self.m_tiles = -(-conv.gemm_m // tiles.tile_m)
        taps = math.prod(conv.taps)
        # Whether the channels of one tap follow those of another in the columns of a tile.
        self.joins_taps = self.image.channels % BLOCK != 0 and taps > 1
        self.columns = self.image.channels * taps if self.joins_taps else conv.channels
        self.n_tiles = -(-self.columns // tiles.tile_n)
        k_tiles = -(-conv.gemm_k // tiles.tile_k)
        self.part = -(-k_tiles // tiles.split_k)

    def result(self, module: ir.Module, type: ir.RankedTensorType) -> ir.Value:
        """What it stores: P[s, weight's axes] or the weight, by the type."""
        grid = (
            self.m_tiles,
            self.n_tiles * (1 if self.joins_taps else math.prod(self.conv.taps)),
            self.tiles.split_k * self.conv.groups,
        )
        inputs = [self.conv.gradient, self.conv.image]
        return dispatched(module, KERNEL, "contraction", grid, inputs, type, self._write)

    def _write(self, memory: list[ir.Value], out: ir.Value) -> None:
        conv, tiles = self.conv, self.tiles
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        x, y, z = (in_32_bits(workgroup_id(axis)) for axis in range(3))
        tap, n_tile = cut(y, [math.prod(conv.taps), self.n_tiles])
        if self.joins_taps:
            tap, n_tile = number(0), y
        part, group = cut(z, [tiles.split_k, conv.groups])
        taps = cut(tap, conv.taps)
        row, column = linear(x, tiles.tile_m), linear(n_tile, tiles.tile_n)
        store = self._store(Line(out=out), thread, (part, group, row, column, *taps))
        buffer = lds_of(tiles, self.part, store.is_narrow)
        lds = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(buffer)).result
        reach = self.part * tiles.tile_k * tiles.split_k
        a = Copy(self.gradient, tiles, memory[0], tiles.tile_m, thread, row, group, [], reach)
        b = (
            TapsCopy(
                self.image, tiles, memory[1], tiles.tile_n, thread, column, group, conv.taps, reach
            )
            if self.joins_taps
            else Copy(
                self.image, tiles, memory[1], tiles.tile_n, thread, column, group, taps, reach
            )
        )
        place = linear(lds_place(thread), 1, lds)
        line = arith.DivUIOp(thread, number(ptx.LINE // ptx.PIECE)).result
        first = linear(part, self.part * tiles.tile_k, line)
        products = Products(tiles, str(ir.MemRefType(memory[0].type).element_type), lds, thread)

        def copy(tile: ir.Value, stage: ir.Value) -> None:
            at = linear(stage, tiles.stage_bytes, place)
            pixel = linear(tile, tiles.tile_k, first)
            steps = range(0, tiles.tile_k, tiles.lines_at_once)
            places = [linear(at, 1, step * ptx.LINE) for step in steps]
            pixels = [linear(pixel, 1, step) for step in steps]
            a.tile(places, pixels, 0)
            b.tile(places, pixels, tiles.b_shift)

        sums = multiplied(tiles, products, self.part, copy)
        store.write(buffer, sums, products.row, products.column)

    def _store(self, line: Line, thread: ir.Value, place: Sequence[ir.Value]) -> Store:
        """The store of a workgroup of a part, a group, a first row and column, and a tap."""
        conv, tiles, steps = self.conv, self.tiles, self._steps()
        part, group, row, column, *taps = place
        start = linear(group, steps["g"], linear(part, math.prod(conv.weight_sizes.values())))
        start = linear(row, steps["k"], start)
        for name, tap in zip(conv.weight_loops[2:-1], taps, strict=True):
            start = linear(tap, steps[name], start)

        def joined(across: ir.Value) -> tuple[ir.Value, ir.Value | None]:
            """Elements to a column of several taps, and whether there is one."""
            at = arith.AddIOp(column, across).result
            *places, channel = cut(at, [*conv.taps, self.image.channels])
            found = linear(channel, steps["c"])
            for name, tap in zip(conv.weight_loops[2:-1], places, strict=True):
                found = linear(tap, steps[name], found)
            is_padded = self.image.channels != conv.channels
            return found, both(
                _has(column, across, tiles.tile_n, self.columns),
                below(channel, conv.channels) if is_padded else None,
            )

        def at(behind: ir.Value, across: ir.Value) -> tuple[ir.Value, ir.Value | None]:
            if self.joins_taps:
                found, has = joined(across)
            else:
                found = linear(across, steps["c"], linear(column, steps["c"]))
                has = _has(column, across, tiles.tile_n, conv.channels)
            found = linear(behind, steps["k"], linear(found, 1, start))
            return found, both(has, _has(row, behind, tiles.tile_m, conv.gemm_m))

        width = math.gcd(widest(line.element), conv.channels) if steps["c"] == 1 else 1
        return Store(tiles=tiles, thread=thread, width=width, place=at, line=line)

    def _steps(self) -> dict[str, int]:
        """Elements between neighbours of the weight, by loop."""
        order, sizes = self.conv.weight_order, self.conv.weight_sizes
        extents = [sizes[name] for name in order]
        return {name: math.prod(extents[at + 1 :]) for at, name in enumerate(order)}


def _has(first: ir.Value, behind: ir.Value, size: int, extent: int) -> ir.Value | None:
    """Whether an axis has an element so far behind a tile's first; None where it always has."""
    return below(arith.AddIOp(first, behind).result, extent) if extent % size else None


def lds_floats(tiles: Tiles, count: int | ir.Value, is_narrow: bool) -> int:
    """LDS of the stages that so many tiles of gemm_k need, and then of the sums."""
    stages = min(tiles.stages, count) if isinstance(count, int) else tiles.stages
    sums = tiles.tile_m * pitch(tiles, is_narrow)
    return max(stages * tiles.stage_bytes // FLOAT, sums)


def lds_of(tiles: Tiles, count: int | ir.Value, is_narrow: bool) -> ir.Value:
    """This LDS, which begins where the swizzle's pattern does."""
    return shared(lds_floats(tiles, count, is_narrow), ptx.SWIZZLED_LINES * ptx.LINE)
