# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of a tile in LDS."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import BLOCK, WARP_GROUP, Tiles

# Fields of a matrix descriptor, in units of 16 bytes: where a tile starts; how far it is from a
# block of 64 channels to the next; how far from eight rows to the next eight. Behind them is which
# swizzle the rows have: that of 128 bytes.
_UNIT, _BLOCKS_AT, _ROWS_AT, _SWIZZLE = 16, 16, 32, 1 << 62


class Products:
    """A wave group's share of a tile."""

    def __init__(self, tiles: Tiles, dtype: str, lds: ir.Value, thread: ir.Value) -> None:
        self.tiles, self.dtype = tiles, dtype
        group = arith.DivUIOp(thread, number(WARP_GROUP)).result
        across = number(tiles.groups_n)
        self.row = linear(arith.DivUIOp(group, across).result, tiles.rows * ptx.ROWS)
        self.column = linear(arith.RemUIOp(group, across).result, tiles.columns)
        a = linear(arith.DivUIOp(self.row, number(BLOCK)).result, tiles.block_bytes, lds)
        b = linear(arith.DivUIOp(self.column, number(BLOCK)).result, tiles.block_bytes, lds)
        self.a, self.b = self._descriptor(a), self._descriptor(linear(b, 1, tiles.b_shift))

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
        zero = ops.zero(ir.F32Type.get())
        return [[zero] * (self.tiles.columns // 2) for _ in range(self.tiles.rows)]

    def start(self, sums: list[list[ir.Value]], stage: ir.Value) -> list[list[ir.Value]]:
        """Start the products of the tile in a stage of LDS."""
        i64 = ir.IntegerType.get_signless(64)
        units = linear(stage, self.tiles.stage_bytes // _UNIT)
        shift = arith.ExtUIOp(i64, units).result
        a, b = (arith.AddIOp(one, shift).result for one in (self.a, self.b))
        steps = range(self.tiles.tile_k // ptx.DEPTH)
        step, block = ptx.DEPTH * ptx.LINE // _UNIT, self.tiles.block_bytes // _UNIT
        columns = [_plus(b, k * step) for k in steps]
        pairs = [
            [(_plus(a, row * block + k * step), columns[k]) for k in steps]
            for row in range(self.tiles.rows)
        ]
        ptx.open_products()
        return ptx.products(sums, pairs, self.tiles.columns, self.dtype)


def _wide(value: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return arith.ConstantOp(i64, ir.IntegerAttr.get(i64, value)).result


def _plus(value: ir.Value, more: int) -> ir.Value:
    return arith.AddIOp(value, _wide(more)).result if more else value
