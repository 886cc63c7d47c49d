# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a weight gradient by copies to LDS (`passes/wgmma_gemm.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu

from conv_compiler.passes.depthwise_parts.arithmetic import (
    cut,
    in_32_bits,
    linear,
    number,
)
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import Copy, TapsCopy, lds_place, pointer
from conv_compiler.passes.wgmma_parts.executable import dispatched, shared, workgroup_id
from conv_compiler.passes.wgmma_parts.main_loop import multiplied, products_of
from conv_compiler.passes.wgmma_parts.sizes import Tiles, operands
from conv_compiler.passes.wgmma_parts.stores import Line, Store, row_words, widest
from conv_compiler.passes.wgmma_parts.weight_places import Columns, WeightPlaces

FLOAT = 4  # bytes


class Kernel:
    """The kernel of one contraction."""

    def __init__(self, conv: Contraction, tiles: Tiles, merged: int = 1) -> None:
        """`merged` adjacent groups are one to the products; their own blocks alone are stored."""
        self.conv, self.tiles = conv, tiles
        self.gradient, self.image = (one.merged(merged) for one in operands(conv))
        self.groups = conv.groups // merged
        self.m_tiles = -(-conv.gemm_m * merged // tiles.tile_m)
        taps, channels = math.prod(conv.taps), self.image.channels
        joins = taps > 1 and (merged > 1 or channels % tiles.block != 0)
        exact = conv.channels * merged
        count = channels * taps if joins else exact
        self.columns = Columns(channels=channels, merged=merged, joins_taps=joins, count=count)
        self.n_tiles = -(-count // tiles.tile_n)
        k_tiles = -(-conv.gemm_k // tiles.tile_k)
        self.part = -(-k_tiles // tiles.split_k)

    def result(self, module: ir.Module, type: ir.RankedTensorType) -> ir.Value:
        """What it stores: P[s, weight's axes] or the weight, by the type."""
        grid = (
            self.m_tiles,
            self.n_tiles * (1 if self.columns.joins_taps else math.prod(self.conv.taps)),
            self.tiles.split_k * self.groups,
        )
        inputs = [self.conv.gradient, self.conv.image]
        return dispatched(
            module, self.tiles.by.kernel("gemm"), "contraction", grid, inputs, type, self._write
        )

    def _write(self, memory: list[ir.Value], out: ir.Value) -> None:
        conv, tiles = self.conv, self.tiles
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        x, y, z = (in_32_bits(workgroup_id(axis)) for axis in range(3))
        joins = self.columns.joins_taps
        tap, n_tile = (number(0), y) if joins else cut(y, [math.prod(conv.taps), self.n_tiles])
        part, group = cut(z, [tiles.split_k, self.groups])
        taps = cut(tap, conv.taps)
        row, column = linear(x, tiles.tile_m), linear(n_tile, tiles.tile_n)
        store = self._store(Line(out=out), thread, (part, group, row, column), taps)
        buffer = lds_of(tiles, self.part, store.is_narrow)
        lds = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(buffer)).result
        reach = self.part * tiles.tile_k * tiles.split_k
        a = Copy(self.gradient, tiles, memory[0], tiles.tile_m, thread, row, group, [], reach)
        kind, of_image = (TapsCopy, conv.taps) if joins else (Copy, taps)
        b = kind(self.image, tiles, memory[1], tiles.tile_n, thread, column, group, of_image, reach)
        place = linear(lds_place(thread), 1, lds)
        line = arith.DivUIOp(thread, number(ptx.LINE // ptx.PIECE)).result
        first = linear(part, self.part * tiles.tile_k, line)
        dtype = str(ir.MemRefType(memory[0].type).element_type)
        products = products_of(tiles)(tiles, dtype, lds, thread)

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

    def _store(
        self,
        line: Line,
        thread: ir.Value,
        place: Sequence[ir.Value],
        taps: Sequence[ir.Value],
    ) -> Store:
        """The store of a workgroup of a part, a group, a first row and column, and a tap."""
        tiles, places = self.tiles, WeightPlaces(conv=self.conv, columns=self.columns)
        part, group, row, column = place
        start = places.start(part, group, taps)

        def at(behind: ir.Value, across: ir.Value) -> tuple[ir.Value, ir.Value | None]:
            rows, columns = (
                arith.AddIOp(first, more).result
                for first, more in ((row, behind), (column, across))
            )
            found, has = places.at(rows, columns, (tiles.tile_m, tiles.tile_n))
            return arith.AddIOp(start, found).result, has

        width = math.gcd(widest(line.element), places.adjacent)
        return Store(tiles=tiles, thread=thread, width=width, place=at, line=line)


def lds_floats(tiles: Tiles, count: int | ir.Value, is_narrow: bool) -> int:
    """LDS of the stages that so many tiles of gemm_k need, and then of the sums."""
    stages = min(tiles.stages, count) if isinstance(count, int) else tiles.stages
    sums = tiles.tile_m * row_words(tiles.tile_n, is_narrow)
    return max(stages * tiles.stage_bytes // FLOAT, sums)


def lds_of(tiles: Tiles, count: int | ir.Value, is_narrow: bool) -> ir.Value:
    """This LDS, which begins where the swizzle's pattern does."""
    words = lds_floats(tiles, count, is_narrow)
    return shared(words, ptx.SWIZZLED_LINES * ptx.LINE, tiles.by.sums)
