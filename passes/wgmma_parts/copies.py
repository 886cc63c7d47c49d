# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a tile of both operands to LDS, 16 bytes a thread at a time.

LDS has a tile as blocks of channels, in rows of 128 bytes: one for each pixel. The pieces of a
row change places, as the instructions expect it: piece c of row k lies at c xor (k mod 8). Eight
threads copy a row. A thread has the same piece of several pixels, and of each pixel that piece of
every block. So one address serves all blocks of a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, inside, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import FEW_BYTES, Axis, Operand, Tiles


class Copy:
    """What a thread copies of one operand: all that is the same in each tile."""

    def __init__(
        self,
        operand: Operand,
        tiles: Tiles,
        memory: ir.Value,
        size: int,
        thread: ir.Value,
        first: ir.Value,
        group: ir.Value,
        taps: Sequence[ir.Value],
        reach: int,
    ) -> None:
        """`size` is the tile's extent along the channels, `first` its first channel, `taps` the
        tap of each spatial axis, of the image alone. The tiles have `reach` pixels in all."""
        self.operand, self.tiles, self.blocks = operand, tiles, size // tiles.block
        self.reach = reach
        self.memory = pointer(memory)
        piece = arith.AndIOp(thread, number(ptx.LINE // ptx.PIECE - 1)).result
        channel = linear(piece, tiles.piece, first)
        rest = operand.channels % size
        self.has = [
            below(linear(channel, 1, block * tiles.block), operand.channels) if rest else None
            for block in range(self.blocks)
        ]
        self.shifts = (
            [
                linear(tap, axis.dilation, -axis.pad)
                for tap, axis in zip(taps, operand.pixels[1:], strict=True)
            ]
            if taps
            else []
        )
        self.start = linear(group, operand.group_step, channel)
        for shift, axis in zip(self.shifts, operand.pixels[1:], strict=False):
            self.start = linear(shift, axis.step, self.start)

    def tile(self, places: Sequence[ir.Value], pixels: Sequence[ir.Value], lds_shift: int) -> None:
        """Start the copies of a tile, of these pixels to these places in LDS."""
        for place, (pixel, exists) in zip(places, map(self._found, pixels), strict=True):
            address = self._address(linear(pixel, 1, self.start), exists)
            for block, has in enumerate(self.has):
                shift = lds_shift + block * self.tiles.block_bytes
                count = self._count(both(exists, has))
                ptx.copy_piece(place, shift, address, block * ptx.LINE, count)

    def _address(self, at: ir.Value, exists: ir.Value | None) -> ir.Value:
        """The address of an element, or of the first one where there is none."""
        wide = arith.ExtUIOp(_i64(), inside(at, exists)).result
        bytes_ = ir.IntegerAttr.get(_i64(), self.tiles.element_bytes)
        size = arith.ConstantOp(_i64(), bytes_).result
        return arith.AddIOp(self.memory, arith.MulIOp(wide, size).result).result

    def _count(self, test: ir.Value | None) -> ir.Value:
        """Bytes to copy."""
        whole = number(ptx.PIECE)
        return whole if test is None else arith.SelectOp(test, whole, number(0)).result

    def _found(self, pixel: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """Elements from the first pixel to one that gemm_k counts, and whether there is one."""
        axes = self.operand.pixels
        total = math.prod(axis.loop for axis in axes)
        exists = below(pixel, total) if self.reach > total else None
        if self.operand.is_row:
            return linear(pixel, axes[-1].step), exists
        batch, *space = cut(pixel, [axis.loop for axis in axes])
        found = linear(batch, axes[0].step)
        tests: list[ir.Value | None] = [exists]
        for place, at in enumerate(space):
            axis = axes[1 + place]
            found = linear(at, axis.stride * axis.step, found)
            if axis.leaves:
                tests.append(self._meets(axis, at, place))
        return found, both(*tests)

    def _meets(self, axis: Axis, at: ir.Value, place: int) -> ir.Value:
        """Whether the window's pixel is one of the operand."""
        return below(linear(at, axis.stride, self.shifts[place]), axis.extent)


class TapsCopy(Copy):
    """What a thread copies of an image whose columns are the channels of one tap after another: of
    each block a piece of a tap of its own."""

    def __init__(
        self,
        operand: Operand,
        tiles: Tiles,
        memory: ir.Value,
        size: int,
        thread: ir.Value,
        first: ir.Value,
        group: ir.Value,
        taps: Sequence[int],
        reach: int,
    ) -> None:
        """As of `Copy`, but that `first` is a column and `taps` are extents."""
        self.operand, self.tiles, self.reach = operand, tiles, reach
        self.blocks = size // tiles.block
        self.memory = pointer(memory)
        piece = arith.AndIOp(thread, number(ptx.LINE // ptx.PIECE - 1)).result
        column = linear(piece, tiles.piece, first)
        axes, total = operand.pixels[1:], math.prod(taps)
        self.has, self.starts, self.of_block = [], [], []
        for block in range(self.blocks):
            at = linear(column, 1, block * tiles.block)
            *places, channel = cut(at, [*taps, operand.channels])
            shifts = [
                linear(tap, axis.dilation, -axis.pad)
                for tap, axis in zip(places, axes, strict=True)
            ]
            start = linear(group, operand.group_step, channel)
            for shift, axis in zip(shifts, axes, strict=True):
                start = linear(shift, axis.step, start)
            columns = total * operand.channels
            self.has.append(below(at, columns) if columns % size else None)
            self.starts.append(start)
            self.of_block.append(shifts)

    def tile(self, places: Sequence[ir.Value], pixels: Sequence[ir.Value], lds_shift: int) -> None:
        """Start the copies of a tile, of these pixels to these places in LDS."""
        axes = self.operand.pixels
        total = math.prod(axis.loop for axis in axes)
        for place, pixel in zip(places, pixels, strict=True):
            exists = below(pixel, total) if self.reach > total else None
            batch, *space = cut(pixel, [axis.loop for axis in axes])
            found = linear(batch, axes[0].step)
            for at, axis in zip(space, axes[1:], strict=True):
                found = linear(at, axis.stride * axis.step, found)
            for block, (start, has) in enumerate(zip(self.starts, self.has, strict=True)):
                self.shifts = self.of_block[block]
                met = [
                    self._meets(axis, at, i)
                    for i, (axis, at) in enumerate(zip(axes[1:], space, strict=True))
                    if axis.leaves
                ]
                test = both(exists, has, *met)
                address = self._address(linear(start, 1, found), test)
                shift = lds_shift + block * self.tiles.block_bytes
                few = self.operand.channels * self.tiles.element_bytes < FEW_BYTES
                ptx.copy_piece(place, shift, address, 0, self._count(test), few)


def lds_place(thread: ir.Value) -> ir.Value:
    """Where in a tile's first block a thread's first piece lies, in bytes."""
    pieces = ptx.LINE // ptx.PIECE
    line = arith.DivUIOp(thread, number(pieces)).result
    piece = arith.AndIOp(thread, number(pieces - 1)).result
    turned = arith.XOrIOp(piece, arith.AndIOp(line, number(ptx.SWIZZLED_LINES - 1)).result).result
    return linear(line, ptx.LINE, linear(turned, ptx.PIECE))


def shares(thread: ir.Value, total: int, threads: int) -> list[tuple[ir.Value, ir.Value | None]]:
    """The numbers below `total` that are this thread's, and whether there is such a number."""
    found: list[tuple[ir.Value, ir.Value | None]] = []
    for behind in range(0, total, threads):
        own = linear(thread, 1, behind)
        found.append((own, below(own, total) if behind + threads > total else None))
    return found


def pointer(memory: ir.Value) -> ir.Value:
    """The address of a memref's first element, in 64 bits."""
    index = ir.Operation.create(
        "memref.extract_aligned_pointer_as_index", results=[ir.IndexType.get()], operands=[memory]
    ).results[0]
    return arith.IndexCastUIOp(_i64(), index).result


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
