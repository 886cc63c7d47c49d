# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The products of a window in LDS with the weights of all taps."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.sizes import ELEMENTS
from conv_compiler.passes.wgmma_parts.window_sizes import WindowSizes
from conv_compiler.problem.window_tiles import Product

# Fields of a descriptor of an operand without swizzle, in units of 16 bytes: where it starts, and
# two distances between blocks of eight by eight elements: along gemm_k, and along its rows or
# columns.
_UNIT, _ALONG_K, _ALONG_ROWS = 16, 16, 32
_BLOCK = ELEMENTS * ptx.PIECE // _UNIT


class Products:
    """A wave group's products."""

    def __init__(
        self, sizes: WindowSizes, dtype: str, lds: ir.Value, weights_at: int, patch: ir.Value
    ) -> None:
        """Of LDS whose weights begin `weights_at` bytes behind its start; `patch` is the wave
        group's first patch."""
        self.sizes, self.dtype = sizes, dtype
        tile = sizes.tile
        to_rows = tile.line_steps[2] if tile.patch_rows > 1 else _BLOCK
        start = arith.DivUIOp(lds, number(_UNIT)).result
        self.a = [
            _descriptor(arith.AddIOp(start, self._line(linear(patch, 1, own))).result, to_rows)
            for own in range(tile.own_patches)
        ]
        self.b = _descriptor(linear(start, 1, weights_at // _UNIT), _BLOCK)

    def _line(self, patch: ir.Value) -> ir.Value:
        """The line of a patch's first unit."""
        tile = self.sizes.tile
        extents = (1, 1, tile.patch_rows, tile.patch_columns)
        found = number(0)
        for place, extent, step in zip(
            cut(patch, tile.patches), extents, tile.line_steps, strict=True
        ):
            found = linear(place, extent * step, found)
        return found

    def sums(self, shift: ir.Value) -> list[list[ir.Value]]:
        """The sums of each patch, over all taps and channels, of the window so many bytes behind
        the start of LDS."""
        tile = self.sizes.tile
        i64 = ir.IntegerType.get_signless(64)
        units = arith.ExtUIOp(i64, arith.DivUIOp(shift, number(_UNIT)).result).result
        patches = [arith.AddIOp(one, units).result for one in self.a]
        zero = ops.zero(ir.F32Type.get())
        sums = [[zero] * int(tile.columns * ptx.SUMS_PER_COLUMN)] * tile.own_patches
        turned = (0, int(self.sizes.direction != "fwd"))
        for product in tile.products():
            ptx.open_products()
            groups = range(tile.merged_groups)
            several = [
                [self._product(patch, product, group) for group in groups] for patch in patches
            ]
            sums = ptx.products(sums, several, self.dtype, turned)
        return ptx.wait_for_products(sums, 0)

    def _product(self, patch: ir.Value, one: Product, group: int) -> ptx.Product:
        tile = self.sizes.tile
        weights = group * tile.group_pieces + one.weights
        to_weights = one.to_weights
        if to_weights is None:
            to_weights = tile.merged_groups * tile.group_pieces - weights  # zeros
        piece = tile.piece_bytes // _UNIT
        return ptx.Product(
            _plus(patch, group * tile.pieces * tile.plane + one.line, one.to_line),
            _plus(self.b, weights * piece, to_weights * piece),
            one.phase * tile.phase_columns + group * tile.results,
            tile.results,
        )


def _descriptor(start: ir.Value, along_rows: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    wide = arith.ExtUIOp(i64, start).result
    return arith.OrIOp(wide, _wide(along_rows << _ALONG_ROWS)).result


def _wide(value: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return arith.ConstantOp(i64, ir.IntegerAttr.get(i64, value)).result


def _plus(descriptor: ir.Value, start: int, along_k: int) -> ir.Value:
    """A descriptor that starts so much further, and whose second half is so far from the first."""
    return arith.AddIOp(descriptor, _wide(start | along_k << _ALONG_K)).result
