# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where tiles of sums wait between two chunks: on the stack, or where the result will be.

Only instructions of tiles know them until the last chunk; what they need are an address and how
many bytes rows lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from conv_compiler.passes.cpu_kernel.addresses import Address
from conv_compiler.passes.cpu_kernel.amx_ops import ROW_BYTES
from conv_compiler.passes.cpu_kernel.indices import constant, linearized, plus, times
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.targets.host import TILE_ROWS

# A tile of sums.
TILE_BYTES = TILE_ROWS * ROW_BYTES
# An address and bytes from row to row.
Where = tuple[ir.Value, ir.Value]


class StackSums:
    """Tiles one behind the other: 1 KiB in one piece each, which takes a third of the time of rows
    that lie in a page each."""

    def __init__(self, tiles: Sequence[int], blocks: int, element: ir.Type) -> None:
        """Room for a workgroup's register tiles, so many of each loop, of so many tiles each."""
        self.counts, self.blocks = tiles, blocks
        size = blocks * TILE_BYTES // (element.width // 8)
        for count in tiles:
            size *= count
        self.memory = Address(stack_tensor([size], element)).first

    def where(self, tile: Sequence[ir.Value], places: Sequence[list[ir.Value]]) -> list[Where]:
        """Of each tile of the register tile with those numbers."""
        first = times(linearized(tile, self.counts), self.blocks * TILE_BYTES)
        return [
            (plus(self.memory, first, constant(number * TILE_BYTES)), constant(ROW_BYTES))
            for number in range(len(places))
        ]


class ResultSums:
    """Tiles in a workgroup's piece of the result, whose axis `rows` has their rows."""

    def __init__(self, piece: ir.Value, rows: int) -> None:
        self.memory = Address(piece)
        self.stride = times(self.memory.strides[rows], self.memory.bytes)

    def where(self, tile: Sequence[ir.Value], places: Sequence[list[ir.Value]]) -> list[Where]:
        """Of tiles at those places in the piece."""
        return [(self.memory.of(at), self.stride) for at in places]
