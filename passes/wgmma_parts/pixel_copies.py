# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a tile of a forward pass or data gradient to LDS, 16 bytes a thread at a time.

The source, and the weight of a forward pass, lie along gemm_k: a line of LDS is 64 channels of one
pixel or of one result channel. The weight of a data gradient has its result channels adjacent: a
line is 64 of them, of one source channel. Pieces of a line change places as in `copies.py`. Eight
threads copy a line, and a thread has the same piece of several lines.

A tile of gemm_k has channels of one tap where these come in 64. Else pieces are counted through all
taps, and each thread looks for the tap of its own.
"""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import pointer
from conv_compiler.passes.wgmma_parts.main_loop import is_below
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.sizes import FEW_BYTES
from conv_compiler.passes.wgmma_parts.taps import Taps
from conv_compiler.problem.slides import Slide

PIECES = ptx.LINE // ptx.PIECE
# A coordinate that no window brings into any axis.
FAR = -(2**30)


class Along:
    """Where a tile's pieces along gemm_k are found: their tap and their channel."""

    def __init__(self, sizes: PixelSizes, taps: Taps, piece: ir.Value) -> None:
        self.sizes, self.taps, self.piece = sizes, taps, piece
        self.tiles = self._tiles()

    def _tiles(self) -> int | ir.Value:
        """Tiles of gemm_k of the workgroup's phase."""
        count, sizes = self.taps.count, self.sizes
        if isinstance(count, int):
            return -(-count * sizes.pieces // PIECES)
        found = linear(count, sizes.pieces, PIECES - 1)
        return arith.DivUIOp(found, number(PIECES)).result

    def pieces(self, tile: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value | None]:
        """Of this thread's piece of a tile: the number of its tap, its channel, and whether there
        is such a piece."""
        sizes = self.sizes
        if not sizes.is_flat:
            tap, block = self._cut(tile)
            return tap, linear(block, sizes.block, linear(self.piece, sizes.piece)), None
        at = linear(tile, PIECES, self.piece)
        tap, piece = cut(at, [1, sizes.pieces])
        return tap, linear(piece, sizes.piece), self._exists(tap)

    def channels(
        self, tile: ir.Value, line: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value | None]:
        """The same of a single channel of a tile, which is a line of its own."""
        sizes, exists = self.sizes, None
        if sizes.is_flat:
            tap, channel = cut(linear(tile, sizes.block, line), [1, sizes.depth])
            exists = self._exists(tap)
        else:
            tap, block = self._cut(tile)
            channel = linear(block, sizes.block, line)
        # Of added channels the weight has no row.
        rows = sizes.sources * sizes.merged_groups
        has = below(channel, rows) if rows < sizes.depth else None
        return tap, channel, both(exists, has)

    def _cut(self, tile: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The tap and the block of channels of a tile."""
        tap, block = cut(tile, [1, self.sizes.depth // self.sizes.block])
        return tap, block

    def _exists(self, tap: ir.Value) -> ir.Value | None:
        count = self.taps.count
        if isinstance(count, int) and count * self.sizes.pieces % PIECES == 0:
            return None
        return is_below(tap, count)


class Source:
    """What a thread copies of the source: a piece of some pixels."""

    def __init__(
        self, along: Along, memory: ir.Value, row: ir.Value, line: ir.Value, group: ir.Value
    ) -> None:
        """`row` is the tile's first row, `line` the thread's first line of it."""
        self.along, self.sizes = along, along.sizes
        sizes, lies = self.sizes, self.sizes.source_lies
        self.lines = range(0, sizes.tile_m, sizes.lines_at_once)
        self.is_row = sizes.is_plain
        total = math.prod(sizes.units)
        first = linear(row, 1, line)
        start = linear(group, lies.group)
        self.left = [axis for axis, slide in enumerate(sizes.slides) if leaves(slide)]
        self.whole: list[ir.Value] = []
        self.coordinates: list[list[ir.Value]] = []
        self.bases: list[ir.Value] = []
        base, size = pointer(memory), sizes.element_bytes
        if self.is_row:
            self.bases = [moved(base, linear(first, lies.axes[-1], start), size)]
        for behind in self.lines:
            pixel = linear(first, 1, behind)
            exists = below(pixel, total) if total % sizes.tile_m else None
            self.whole.append(copied_bytes(exists if not self.left else None))
            if self.is_row:
                continue
            image, *units = cut(pixel, sizes.units)
            place = [linear(at, s.step) for at, s in zip(units, sizes.slides, strict=True)]
            at = linear(image, lies.image, start)
            for one, step in zip(place, lies.axes, strict=True):
                at = linear(one, step, at)
            self.bases.append(moved(base, at, size))
            if self.left and exists is not None:
                axis = self.left[0]
                place[axis] = arith.SelectOp(exists, place[axis], number(FAR)).result
            self.coordinates.append(place)

    def tile(self, tile: ir.Value, at: ir.Value) -> None:
        """Start the copies of a tile to the thread's place in LDS and those behind it."""
        sizes, lies = self.sizes, self.sizes.source_lies
        tap, channel, exists = self.along.pieces(tile)
        _, offsets = self.along.taps.at(tap)
        for offset, step in zip(offsets, lies.axes, strict=True):
            channel = linear(offset, step, channel)
        if self.is_row:
            address = moved(self.bases[0], channel, sizes.element_bytes)
        for number_, behind in enumerate(self.lines):
            shift = behind * lies.axes[-1] * sizes.element_bytes if self.is_row else 0
            if not self.is_row:
                address = moved(self.bases[number_], channel, sizes.element_bytes)
            tests = [
                below(
                    arith.AddIOp(self.coordinates[number_][axis], offsets[axis]).result,
                    sizes.slides[axis].size,
                )
                for axis in self.left
            ]
            size = copied_bytes(both(exists, *tests), self.whole[number_])
            few = sizes.depth * sizes.element_bytes < FEW_BYTES
            ptx.copy_piece(at, behind * ptx.LINE, address, shift, size, few)


class ResultRows:
    """What a thread copies of a weight along gemm_k: a piece of some result channels."""

    def __init__(
        self, along: Along, memory: ir.Value, column: ir.Value, line: ir.Value, group: ir.Value
    ) -> None:
        self.along, self.sizes = along, along.sizes
        steps = self.sizes.weights
        self.first = linear(column, 1, line)
        at = linear(self.first, steps.result, linear(group, steps.group))
        self.base = moved(pointer(memory), at, self.sizes.element_bytes)

    def tile(self, tile: ir.Value, at: ir.Value) -> None:
        """Start the copies of a tile to the thread's place in LDS and those behind it."""
        sizes, steps = self.sizes, self.sizes.weights
        tap, channel, exists = self.along.pieces(tile)
        found, _ = self.along.taps.at(tap)
        own, channel = _of_group(channel, sizes.sources, sizes)
        address = moved(self.base, linear(found, steps.tap, channel), sizes.element_bytes)
        for behind in range(0, sizes.tile_n, sizes.lines_at_once):
            row = linear(self.first, 1, behind)
            has = below(row, sizes.gemm_n) if sizes.gemm_n % sizes.tile_n else None
            of_row, _ = _of_group(row, sizes.results, sizes)
            size = copied_bytes(both(exists, has, _same(own, of_row)))
            shift = behind * steps.result * sizes.element_bytes
            ptx.copy_piece(at, behind * ptx.LINE, address, shift, size)


class SourceRows:
    """What a thread copies of a weight along its result channels: a piece of some source channels,
    and that of each block of 64 result channels."""

    def __init__(
        self, along: Along, memory: ir.Value, column: ir.Value, line: ir.Value, group: ir.Value
    ) -> None:
        self.along, self.sizes, self.line = along, along.sizes, line
        sizes, steps = self.sizes, self.sizes.weights
        channel = linear(along.piece, sizes.piece, column)
        self.base = moved(pointer(memory), linear(group, steps.group), sizes.element_bytes)
        self.blocks = []
        for block in range(0, sizes.tile_n, sizes.block):
            at = linear(channel, 1, block)
            has = below(at, sizes.gemm_n) if sizes.gemm_n % sizes.tile_n else None
            self.blocks.append((has, *_of_group(at, sizes.results, sizes)))

    def tile(self, tile: ir.Value, at: ir.Value) -> None:
        """Start the copies of a tile to the thread's place in LDS and those behind it."""
        sizes, steps = self.sizes, self.sizes.weights
        for behind in range(0, sizes.tile_k, sizes.lines_at_once):
            tap, row, exists = self.along.channels(tile, linear(self.line, 1, behind))
            found, _ = self.along.taps.at(tap)
            delta = linear(found, steps.tap, linear(row, steps.source))
            of_row, _ = _of_group(row, sizes.sources, sizes)
            address = None
            for block, (has, own, channel) in enumerate(self.blocks):
                if address is None or own is not None:
                    address = moved(self.base, linear(channel, 1, delta), sizes.element_bytes)
                ahead = block * ptx.LINE if own is None else 0
                shift = block * sizes.block_bytes + behind * ptx.LINE
                size = copied_bytes(both(exists, has, _same(own, of_row)))
                ptx.copy_piece(at, shift, address, ahead, size)


def _of_group(
    channel: ir.Value, channels: int, sizes: PixelSizes
) -> tuple[ir.Value | None, ir.Value]:
    """Of merged groups the one that a channel is of, and its number there."""
    if sizes.merged_groups == 1:
        return None, channel
    group, channel = cut(channel, [sizes.merged_groups, channels])
    return group, channel


def _same(a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
    if a is None or b is None:
        return None
    return arith.CmpIOp(arith.CmpIPredicate.eq, a, b).result


def leaves(slide: Slide) -> bool:
    """Whether a window leaves the source."""
    last = (slide.units - 1) * slide.step
    offsets = [read.offset for reads in slide.window for read in reads]
    return any(not 0 <= offset <= slide.size - 1 - last for offset in offsets)


def moved(address: ir.Value, elements: ir.Value, element_bytes: int) -> ir.Value:
    """An address so many elements further, which may be fewer than none."""
    i64 = ir.IntegerType.get_signless(64)
    wide = arith.ExtSIOp(i64, elements).result
    size = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, element_bytes)).result
    return arith.AddIOp(address, arith.MulIOp(wide, size).result).result


def copied_bytes(test: ir.Value | None, whole: ir.Value | None = None) -> ir.Value:
    """Bytes to copy where a test holds: `whole`, or those of a piece; else none."""
    whole = number(ptx.PIECE) if whole is None else whole
    return whole if test is None else arith.SelectOp(test, whole, number(0)).result
