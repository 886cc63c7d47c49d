# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of a tile in LDS by waves: `ldmatrix` to registers, `mma.sync` from there.

A wave multiplies fragments of 16 rows and 16 columns by 32 bytes of gemm_k. `ldmatrix` reads one
as four blocks of eight by eight, to which each eight lanes give the addresses of the lines. It
transposes blocks on the way where lines lie along rows or columns. Lines are those of `copies.py`:
pieces of eight adjacent lines lie in different banks, so no read meets another one.
"""

from __future__ import annotations

from itertools import product

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import STEP_BYTES, WAVE, Tiles

# Rows or columns of a fragment, and of a block.
FRAGMENT, EIGHT = 16, 8
Sums = list[list[ir.Value]]


class Fragments:
    """Where a lane finds its lines of an operand's fragments."""

    def __init__(
        self,
        tiles: Tiles,
        lds: ir.Value,
        first: ir.Value,
        along_k: bool,
        lane: ir.Value,
        is_b: bool,
    ) -> None:
        """Of the operand that begins at an address of LDS, from its row or column `first` on.

        Of the four blocks that a fragment is read as, the second is behind the first along the rows
        of A, and along gemm_k of B; the third lies the other way.
        """
        self.tiles, self.along_k = tiles, along_k
        third, second, line = cut(lane, [2, 2, EIGHT])
        across, k = (third, second) if is_b else (second, third)
        if along_k:
            start = linear(first, ptx.LINE, linear(across, EIGHT * ptx.LINE, lds))
            piece = k
        else:
            block, place = cut(first, [1, tiles.block])
            piece = linear(arith.DivUIOp(place, number(tiles.piece)).result, 1, across)
            start = linear(block, tiles.block_bytes, linear(k, EIGHT * ptx.LINE, lds))
        self.start = linear(line, ptx.LINE, start)
        # Of fragments behind one another, the pieces of a lane's line.
        self.pieces = [
            linear(_xor(_xor(piece, line), number(at)), ptx.PIECE)
            for at in range(0, ptx.LINE // ptx.PIECE, STEP_BYTES // ptx.PIECE)
        ]

    def read(self, step: int, fragment: int, stage: ir.Value) -> list[ir.Value]:
        """Four registers of a fragment, by its number and that of its step along gemm_k, of the
        stage that begins so many bytes behind the first one."""
        if self.along_k:
            turn, shift = step, fragment * FRAGMENT * ptx.LINE
        else:
            block, turn = divmod(fragment, self.tiles.block // FRAGMENT)
            shift = block * self.tiles.block_bytes + step * self.tiles.step * ptx.LINE
        address = arith.AddIOp(arith.AddIOp(self.start, self.pieces[turn]).result, stage).result
        return ptx.read_matrices(address, shift, not self.along_k)


class WordFragments:
    """Where a lane finds its words of fragments of 32-bit elements, whose lines lie along rows.

    `ldmatrix` cannot transpose them, so a lane reads each word. Lane l has row l / 4 and the line
    l mod 4 of each eight of gemm_k, and the one four behind it. With `in_pairs` these are the lines
    2 (l mod 4) and the one behind it, so that no lane meets another one's bank. The order of gemm_k
    is free where the other operand has the same.
    """

    def __init__(
        self,
        tiles: Tiles,
        lds: ir.Value,
        first: ir.Value,
        lane: ir.Value,
        is_b: bool,
        in_pairs: bool,
    ) -> None:
        self.tiles, self.is_b = tiles, is_b
        between, self.apart = (2, 1) if in_pairs else (1, 4)
        row, at = cut(lane, [EIGHT, 4])
        line = linear(at, between)
        block, place = cut(first, [1, tiles.block])
        of_row, word = cut(row, [2, tiles.piece])
        piece = linear(arith.DivUIOp(place, number(tiles.piece)).result, 1, of_row)
        start = linear(block, tiles.block_bytes, linear(word, tiles.element_bytes, lds))
        self.start = linear(line, ptx.LINE, start)
        self.pieces = [
            linear(_xor(_xor(piece, line), number(at)), ptx.PIECE)
            for at in range(ptx.LINE // ptx.PIECE)
        ]

    def read(self, step: int, fragment: int, stage: ir.Value) -> list[ir.Value]:
        """As of `Fragments`."""
        block, turn = divmod(fragment, self.tiles.block // FRAGMENT)
        behind = block * self.tiles.block_bytes + step * self.tiles.step * ptx.LINE
        found = []
        for third, second in product(range(2), range(2)):
            across, later = (third, second) if self.is_b else (second, third)
            rows = turn * FRAGMENT + across * EIGHT
            piece = self.pieces[rows // self.tiles.piece ^ later * self.apart]
            address = arith.AddIOp(arith.AddIOp(self.start, piece).result, stage).result
            found.append(ptx.read_word(address, behind + later * self.apart * ptx.LINE))
        return found


class WaveProducts:
    """A wave's share of a tile; the parts as of `products.Products`."""

    def __init__(
        self,
        tiles: Tiles,
        dtype: str,
        lds: ir.Value,
        thread: ir.Value,
        along_k: tuple[bool, bool] = (False, False),
        group: tuple[int, int] = (0, 0),
    ) -> None:
        self.tiles, self.dtype, self.group = tiles, dtype, group
        wave, lane = cut(thread, [1, WAVE])
        down, across = cut(wave, [1, tiles.groups_n])
        self.row = linear(down, tiles.tile_m // tiles.groups_m)
        self.column = linear(across, tiles.columns)
        starts = (lds, self.row), (linear(lds, 1, tiles.b_shift), self.column)
        in_words = [tiles.element_bytes > 2 and not along for along in along_k]
        self.a, self.b = (
            WordFragments(tiles, *start, lane, bool(is_b), in_pairs=all(in_words))
            if in_words[is_b]
            else Fragments(tiles, *start, along_k[is_b], lane, bool(is_b))
            for is_b, start in enumerate(starts)
        )

    def zeros(self) -> Sums:
        """The sums before the first product, of each 16 rows."""
        zero = ops.zero(ir.F32Type.get())
        return [[zero] * (self.tiles.columns // 2) for _ in range(self.tiles.rows)]

    def start(self, sums: Sums, stage: ir.Value) -> Sums:
        """The sums with the products of the tile in a stage of LDS.

        Fragments are read while those before are multiplied.
        """
        at = linear(stage, self.tiles.stage_bytes)
        found = [list(own) for own in sums]
        steps = self.tiles.tile_k // self.tiles.step
        following = self._fragments(0, at)
        for step in range(steps):
            a, b = following
            if step + 1 < steps:
                following = self._fragments(step + 1, at)
            for own, left in zip(found, a, strict=True):
                for eight, right in b:
                    place = slice(4 * eight, 4 * eight + 4)
                    own[place] = ptx.product(own[place], left, right, self.dtype)
        return found

    def done(self, sums: Sums, left: int) -> Sums:
        """The sums: products do not go on by themselves."""
        return sums

    def _fragments(
        self, step: int, stage: ir.Value
    ) -> tuple[list[list[ir.Value]], list[tuple[int, list[ir.Value]]]]:
        """Registers of A of each 16 rows, and of B of each eight columns that a step has."""
        a = [self.a.read(step, row, stage) for row in range(self.tiles.rows)]
        first, width = self._columns(step)
        b = []
        for fragment in range(first // FRAGMENT, -(-(first + width) // FRAGMENT)):
            registers = self.b.read(step, fragment, stage)
            for half in range(2):
                eight = 2 * fragment + half
                if first <= eight * EIGHT < first + width:
                    b.append((eight, registers[2 * half : 2 * half + 2]))
        return a, b

    def _columns(self, step: int) -> tuple[int, int]:
        """The first column that a step's products have, and how many: those of its group."""
        depth, width = self.group
        if not depth:
            return 0, self.tiles.columns
        return step * self.tiles.step // depth * width, width


def _xor(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.XOrIOp(a, b).result
