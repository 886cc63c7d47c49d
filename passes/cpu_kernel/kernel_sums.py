# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sums of a workgroup: register tiles of vectors, kept in the result between chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from iree.compiler import ir
from iree.compiler.dialects import vector

from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import LoopNest
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times


class VectorSums:
    """The sums of a kernel of vectors while it is written.

    `tile` are the iterations of each parallel loop in a register tile, `blocks` those of them that
    one block of sums has, of type `sums` and element type `element`.
    """

    nest: LoopNest
    tile: Mapping[str, int]
    blocks: dict[str, int]
    sums: ir.VectorType
    element: ir.Type

    def inside(self, tile: Sequence[ir.Value]) -> dict[str, ir.Value]:
        """First iteration of each parallel loop in a register tile, from the workgroup's on."""
        return {p: times(i, self.tile[p]) for p, i in zip(self.nest.parallel, tile, strict=True)}

    def offsets(self) -> list[dict[str, int]]:
        """Where each block of sums lies in the tile."""
        ranges = [range(0, self.tile[p], self.blocks.get(p, 1)) for p in self.nest.parallel]
        return [dict(zip(self.nest.parallel, at, strict=True)) for at in product(*ranges)]

    def zeros(self) -> list[ir.Value]:
        """Sums of nothing."""
        return [self.zero() for _ in self.offsets()]

    def zero(self) -> ir.Value:
        """A block of sums of nothing."""
        return vector.BroadcastOp(self.sums, ops.zero(self.element)).result

    def places(self, tile: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """Indices in a piece of each block of a register tile."""
        inside = self.inside(tile)
        return [
            [plus(inside[p], constant(shift)) for p, shift in offsets.items()]
            for offsets in self.offsets()
        ]

    def cleared(self, piece: ir.Value, tiles: Sequence[int]) -> ir.Value:
        """The piece with zeros for the sums of all tiles, before the first chunk."""
        return loops(tiles, [piece], lambda at, values: [self.write(values[0], at, self.zeros())])[
            0
        ]

    def kept(self, piece: ir.Value, tile: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of a tile as the chunk before left them."""
        map, zero = ir.AffineMap.get_minor_identity(len(tile), 1), ops.zero(self.element)
        return [
            vector.TransferReadOp(self.sums, piece, at, map, zero, [True]).result
            for at in self.places(tile)
        ]

    def keep(self, piece: ir.Value, tile: Sequence[ir.Value], sums: Sequence[ir.Value]) -> ir.Value:
        """The piece, with the sums of a tile kept for the next chunk."""
        return self.write(piece, tile, sums)

    def finished(self, piece: ir.Value, tiles: Sequence[int]) -> ir.Value:
        """The piece with the sums of all tiles in it, after the last chunk."""
        return piece

    def write(
        self, piece: ir.Value, tile: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> ir.Value:
        """The piece with the sums of a tile in their places."""
        for at, value in zip(self.places(tile), sums, strict=True):
            piece = self.with_block(piece, at, value)
        return piece

    def with_block(self, piece: ir.Value, at: Sequence[ir.Value], value: ir.Value) -> ir.Value:
        """The piece with a block of sums in its place."""
        map = ir.AffineMap.get_minor_identity(len(at), 1)
        return vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result
