# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of a tile in LDS by wave groups."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import BLOCK, STEP_BYTES, WARP_GROUP, WAVE, Tiles

# Fields of a matrix descriptor, in units of 16 bytes: where a tile starts; how far it is from a
# block of 64 channels to the next, which lines along gemm_k do not use; how far from eight lines to
# the next eight. Behind them is which swizzle the lines have: that of 128 bytes.
_UNIT, _BLOCKS_AT, _ROWS_AT, _SWIZZLE = 16, 16, 32, 1 << 62
# Rows of each 64 that are a wave's.
WAVE_ROWS = 16


class Products:
    """A wave group's share of a tile.

    What `start` returns are sums that `done` or another `start` takes, and nothing else.
    """

    def __init__(
        self,
        tiles: Tiles,
        dtype: str,
        lds: ir.Value,
        thread: ir.Value,
        along_k: tuple[bool, bool] = (False, False),
        group: tuple[int, int] = (0, 0),
    ) -> None:
        """`row` and `column` will be those of the wave's first sum, `group_row` the first row of
        its wave group.

        `along_k` tells of A and of B whether a line of LDS is 64 of gemm_k, of one row or column.
        Else it is 64 rows or columns, of one pixel of gemm_k. `group` has the extents along gemm_k
        and along the columns of each merged group, (0, 0) without such. Groups are not multiplied
        with each other.
        """
        self.tiles, self.dtype, self.along_k, self.group = tiles, dtype, along_k, group
        group = arith.DivUIOp(thread, number(WARP_GROUP)).result
        across = number(tiles.groups_n)
        row = linear(arith.DivUIOp(group, across).result, tiles.rows * ptx.ROWS)
        self.group_row = row
        self.column = linear(arith.RemUIOp(group, across).result, tiles.columns)
        a, b = (
            linear(place, ptx.LINE, lds)
            if is_along
            else linear(arith.DivUIOp(place, number(BLOCK)).result, tiles.block_bytes, lds)
            for place, is_along in zip((row, self.column), along_k, strict=True)
        )
        self.a, self.b = self._descriptor(a), self._descriptor(linear(b, 1, tiles.b_shift))
        wave = arith.DivUIOp(arith.RemUIOp(thread, number(WARP_GROUP)).result, number(WAVE)).result
        self.row = linear(wave, WAVE_ROWS, row)

    def _descriptor(self, start: ir.Value) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        at = arith.ExtUIOp(i64, arith.DivUIOp(start, number(_UNIT)).result).result
        fields = (
            _SWIZZLE
            | self.tiles.block_bytes // _UNIT << _BLOCKS_AT
            | ptx.SWIZZLED_LINES * ptx.LINE // _UNIT << _ROWS_AT
        )
        return arith.OrIOp(at, _wide(fields)).result

    def zeros(self) -> list[list[ir.Value]]:
        """The sums before the first product, of each 64 rows."""
        zero = ops.zero(ir.Type.parse(self.tiles.by.sums))
        return [[zero] * (self.tiles.columns // 2) for _ in range(self.tiles.rows)]

    def start(
        self, sums: list[list[ir.Value]], stage: ir.Value, of_b: ir.Value | None = None
    ) -> list[list[ir.Value]]:
        """Start the products of the tile in a stage of LDS, of which B may have another number."""
        turned = (int(not self.along_k[0]), int(not self.along_k[1]))
        several = self._instructions(stage, of_b)
        ptx.open_products()
        return ptx.products(sums, several, self.dtype, turned)

    def _instructions(self, stage: ir.Value, of_b: ir.Value | None) -> list[list[ptx.Product]]:
        """The instructions of a tile, of each 64 rows."""
        a_stage, b_stage = self.tiles.stage_steps
        a = arith.AddIOp(self.a, _units(stage, a_stage)).result
        b = arith.AddIOp(self.b, _units(stage if of_b is None else of_b, b_stage)).result
        steps = range(self.tiles.tile_k // self.tiles.step)
        a_step, b_step = (_step(is_along) for is_along in self.along_k)
        block = (ptx.ROWS * ptx.LINE if self.along_k[0] else self.tiles.block_bytes) // _UNIT
        columns = [self._columns(k) for k in steps]
        lies = [_plus(b, k * b_step + self._shift(columns[k][0])) for k in steps]
        return [
            [ptx.Product(_plus(a, row * block + k * a_step), lies[k], *columns[k]) for k in steps]
            for row in range(self.tiles.rows)
        ]

    def done(self, sums: list[list[ir.Value]], left: int) -> list[list[ir.Value]]:
        """The sums once no more than so many tiles' products are on their way."""
        return ptx.wait_for_products(sums, left)

    def _columns(self, step: int) -> tuple[int, int]:
        """The first column that an instruction has, and how many."""
        depth, width = self.group
        if not depth:
            return 0, self.tiles.columns
        return step * self.tiles.step // depth * width, width

    def _shift(self, column: int) -> int:
        """From the first column of a wave group to another one of its first block, in units of a
        descriptor."""
        size = self.tiles.element_bytes
        return column * (ptx.LINE if self.along_k[1] else size) // _UNIT


class PromotedProducts(Products):
    """The same where an instruction keeps fewer bits of a sum than f32 has: those of a tile are
    summed up apart, and added to the others in f32 before the next tile's products start."""

    def start(
        self, sums: list[list[ir.Value]], stage: ir.Value, of_b: ir.Value | None = None
    ) -> list[list[ir.Value]]:
        """Start the products of the tile in a stage of LDS: the sums of the other tiles, and behind
        them those of this one."""
        sums = self.done(sums, 0)
        several = self._instructions(stage, of_b)
        ptx.open_products()
        return [*sums, *ptx.products_alone(self.tiles.columns, several, self.dtype)]

    def done(self, sums: list[list[ir.Value]], left: int) -> list[list[ir.Value]]:
        """The sums, a tile's that is on its way among them."""
        rows = self.tiles.rows
        if len(sums) == rows:
            return sums
        tile = ptx.wait_for_products(sums[rows:], 0)
        return [
            [ops.add(a, b) for a, b in zip(own, more, strict=True)]
            for own, more in zip(sums[:rows], tile, strict=True)
        ]


def _units(stage: ir.Value, step: int) -> ir.Value:
    """How far a stage is from the first one, in units of a descriptor."""
    i64 = ir.IntegerType.get_signless(64)
    return arith.ExtUIOp(i64, linear(stage, step // _UNIT)).result


def _step(is_along_k: bool) -> int:
    """From an instruction's operand to the next one's along gemm_k, in units of a descriptor."""
    return (STEP_BYTES if is_along_k else ptx.DEPTH * ptx.LINE) // _UNIT


def _wide(value: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return arith.ConstantOp(i64, ir.IntegerAttr.get(i64, value)).result


def _plus(value: ir.Value, more: int) -> ir.Value:
    return arith.AddIOp(value, _wide(more)).result if more else value
