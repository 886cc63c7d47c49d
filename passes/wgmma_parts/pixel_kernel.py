# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a forward pass or data gradient by wave groups (`passes/wgmma_pixels.py`)."""

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
from conv_compiler.passes.wgmma_parts.copies import lds_place, pointer
from conv_compiler.passes.wgmma_parts.executable import dispatched, workgroup_id
from conv_compiler.passes.wgmma_parts.kernel import lds_floats, lds_of
from conv_compiler.passes.wgmma_parts.main_loop import multiplied, products_of
from conv_compiler.passes.wgmma_parts.pixel_copies import (
    PIECES,
    Along,
    ResultRows,
    Source,
    SourceRows,
)
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.stores import (
    Extra,
    Line,
    Place,
    Store,
    in_memory,
    widest,
)
from conv_compiler.passes.wgmma_parts.taps import Taps


class PixelKernel:
    """The kernel of one problem."""

    def __init__(self, sizes: PixelSizes) -> None:
        self.sizes = sizes
        self.row_tiles = -(-math.prod(sizes.units) // sizes.tile_m)
        self.column_tiles = -(-sizes.gemm_n // sizes.tile_n)

    def result(
        self,
        module: ir.Module,
        operands: Sequence[ir.Value],
        type: ir.RankedTensorType,
        op: ir.Operation | None = None,
        extra: Sequence[Extra] = (),
    ) -> ir.Value:
        """What it stores, of the source and the weight: P[s, result's axes] or the result, by the
        type. An op on the sums and the tensors that it reads beside them are of the result."""

        def body(memory: list[ir.Value], out: ir.Value) -> None:
            self._write(memory[:2], Line(out=out, op=op, extra=in_memory(extra, memory[2:])))

        inputs = [*operands, *(one.tensor for one in extra)]
        name = self.sizes.by.kernel("pixels")
        return dispatched(module, name, "contraction", self.grid, inputs, type, body)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups along each axis."""
        sizes = self.sizes
        return (
            self.row_tiles * self.column_tiles,
            math.prod(sizes.phases),
            sizes.split_k * sizes.groups // sizes.merged_groups,
        )

    def _write(self, memory: Sequence[ir.Value], line: Line) -> None:
        sizes = self.sizes
        thread = in_32_bits(gpu.ThreadIdOp(gpu.Dimension.x).result)
        x, y, z = (in_32_bits(workgroup_id(axis)) for axis in range(3))
        row_tile, column_tile = cut(x, [self.row_tiles, self.column_tiles])
        # Phases with more taps are the last, as a rule, and take longest: they start first.
        phase = cut(linear(y, -1, math.prod(sizes.phases) - 1), sizes.phases)
        part, group = cut(z, [sizes.split_k, sizes.groups // sizes.merged_groups])
        row, column = linear(row_tile, sizes.tile_m), linear(column_tile, sizes.tile_n)
        self.write_tile(memory, line, thread, phase, (part, group, row, column))

    def write_tile(
        self,
        memory: Sequence[ir.Value],
        line: Line,
        thread: ir.Value,
        phase: Sequence[ir.Value],
        place: Sequence[ir.Value],
        buffer: ir.Value | None = None,
    ) -> None:
        """Write what a thread does for a tile of a phase: of a part, a group, a first row and
        column. Without a buffer of LDS it takes one of its own."""
        sizes, (part, group, row, column) = self.sizes, place
        own = arith.DivUIOp(thread, number(PIECES)).result
        piece = arith.AndIOp(thread, number(PIECES - 1)).result
        along = Along(sizes, Taps(sizes.slides, sizes.taps, phase), piece)
        is_along = sizes.weight_along_k
        a = Source(along, memory[0], row, own, group)
        b = (ResultRows if is_along else SourceRows)(along, memory[1], column, own, group)
        first, count = self._part(along.tiles, part)
        store = self._store(line, thread, phase, place)
        if buffer is None:
            buffer = lds_of(sizes, count, store.is_narrow)
        lds = arith.TruncIOp(ir.IntegerType.get_signless(32), pointer(buffer)).result
        start = linear(lds_place(thread), 1, lds)
        element = str(ir.MemRefType(memory[0].type).element_type)
        of_group = (sizes.sources, sizes.results) if sizes.merged_groups > 1 else (0, 0)
        products = products_of(sizes)(sizes, element, lds, thread, (True, is_along), of_group)

        def copy(tile: ir.Value, stage: ir.Value) -> None:
            at = linear(stage, sizes.stage_bytes, start)
            tile = tile if first is None else arith.AddIOp(tile, first).result
            a.tile(tile, at)
            b.tile(tile, linear(at, 1, sizes.b_shift))

        sums = multiplied(sizes, products, count, copy)
        store.write(buffer, sums, products.row, products.column)

    def _store(
        self, line: Line, thread: ir.Value, phase: Sequence[ir.Value], place: Sequence[ir.Value]
    ) -> Store:
        """The store of a workgroup of a phase; of a part, a group, a first row and column."""
        return Store(
            tiles=self.sizes,
            thread=thread,
            width=self.width_of(line),
            place=self.place_of(phase, place),
            line=line,
        )

    def place_of(self, phase: Sequence[ir.Value], place: Sequence[ir.Value]) -> Place:
        """Where sums of a phase lie in the result: of a part, a group, a first row and column."""
        sizes, (part, group, row, column) = self.sizes, place
        start = linear(group, sizes.result_lies.group, column)
        if sizes.split_k > 1:
            start = linear(part, self.elements, start)

        def at(behind: ir.Value, across: ir.Value) -> tuple[ir.Value, ir.Value | None]:
            found, exists = self._pixel(arith.AddIOp(row, behind).result, phase)
            has = None
            if sizes.gemm_n % sizes.tile_n:
                has = below(arith.AddIOp(column, across).result, sizes.gemm_n)
            return arith.AddIOp(linear(start, 1, across), found).result, both(exists, has)

        return at

    def width_of(self, line: Line) -> int:
        """Adjacent columns that a thread stores at a time."""
        return math.gcd(widest(line.element), self.sizes.gemm_n)

    def lds_floats(self, *, is_narrow: bool) -> int:
        """LDS of a workgroup of one phase: stages of both operands, and then the sums."""
        sizes = self.sizes
        count = -(-sizes.k_tiles((0, 0, 0)) // sizes.split_k)
        one_phase = max(sizes.phases) == 1
        return lds_floats(sizes, count if one_phase else sizes.stages, is_narrow)

    @property
    def elements(self) -> int:
        """Elements of the result."""
        sizes = self.sizes
        outs = math.prod(slide.outs for slide in sizes.slides)
        return sizes.batch * outs * sizes.groups * sizes.results

    def _part(
        self, tiles: int | ir.Value, part: ir.Value
    ) -> tuple[ir.Value | None, int | ir.Value]:
        """The first tile of gemm_k of a part, and how many it has."""
        parts = self.sizes.split_k
        if parts == 1:
            return None, tiles
        if isinstance(tiles, int):
            own = -(-tiles // parts)
            first = linear(part, own)
            if own * parts == tiles:
                return first, own
            return first, _at_most(arith.SubIOp(number(tiles), first).result, own)
        own_ = arith.DivUIOp(linear(tiles, 1, parts - 1), number(parts)).result
        first = arith.MulIOp(part, own_).result
        left = arith.SubIOp(tiles, first).result
        return first, _at_most(left, own_)

    def _pixel(self, row: ir.Value, phase: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
        """Where the pixel of a row lies in the result, and whether there is one."""
        sizes, lies = self.sizes, self.sizes.result_lies
        total = math.prod(sizes.units)
        exists = below(row, total) if total % sizes.tile_m else None
        if max(sizes.phases) == 1:
            return linear(row, lies.axes[-1]), exists
        image, *units = cut(row, sizes.units)
        at, tests = linear(image, lies.image), [exists]
        for unit, own, slide, step in zip(units, phase, sizes.slides, lies.axes, strict=True):
            place = linear(unit, slide.phases, own) if slide.phases > 1 else unit
            if slide.outs % slide.phases:
                tests.append(below(place, slide.outs))
            at = linear(place, step, at)
        return at, both(*tests)


def _at_most(value: ir.Value, most: int | ir.Value) -> ir.Value:
    """A number that may be negative, from 0 to a bound."""
    bound = number(most) if isinstance(most, int) else most
    least = arith.MaxSIOp(value, number(0)).result
    return arith.MinSIOp(least, bound).result
