# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a lane of `scaled-gemm` stores its sums, after the epilogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.passes.depthwise_parts.arithmetic import below, both, linear, put_where
from conv_compiler.passes.depthwise_parts.filters import load
from conv_compiler.passes.scaled_parts.operands import Strides
from conv_compiler.passes.scaled_parts.products import image_and_taps
from conv_compiler.passes.scaled_parts.sizes import ROWS

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Result
    from conv_compiler.passes.scaled_parts.sizes import ScaledSizes


class Stores:
    """The stores of a lane. `order` names the axes of the result, `extents` and `tiles` are its
    sizes and those of a workgroup's tile, by name."""

    def __init__(
        self,
        sizes: ScaledSizes,
        result: Result,
        order: str,
        extents: Mapping[str, int],
        tiles: Mapping[str, int],
    ) -> None:
        self.sizes, self.result, self.order = sizes, result, order
        self.extents, self.tiles, self.extra = extents, tiles, result.extra()
        letters = {"G": sizes.groups, "K": sizes.rows, "C": sizes.images}
        self.stored = Strides.dense(sizes.result, letters, sizes.taps)

    def written(
        self, piece: ir.Value, lane: dict[str, ir.Value], sums: Sequence[ir.Value]
    ) -> ir.Value:
        """The lane's piece of the result with its sums after the epilogue."""
        sizes = self.sizes
        rows, columns = ROWS * sizes.row_tiles, sizes.column_tiles
        outer, inner = ("c", "r") if sizes.row_is_inner else ("r", "c")
        counts = {"r": rows, "c": columns}
        whole = self.extents[inner] % counts[inner] == 0

        def sum_at(row: int, column: int) -> ir.Value:
            tile = row // ROWS * columns + column
            return vector.ExtractOp(sums[tile], [], [row % ROWS]).result

        for at in range(counts[outer]):
            line = [
                sum_at(*((x, at) if sizes.row_is_inner else (at, x))) for x in range(counts[inner])
            ]
            for x in (0,) if whole else range(counts[inner]):
                taken = line if whole else [line[x]]
                place = {outer: (at, lane[outer]), inner: (x, lane[inner])}
                piece = self.put(piece, taken, place, lane["g"], (outer, inner))
        return piece

    def put(
        self,
        piece: ir.Value,
        sums: list[ir.Value],
        place: dict[str, tuple[int, ir.Value]],
        group: ir.Value,
        names: tuple[str, str],
    ) -> ir.Value:
        """The piece with adjacent elements at a place, where the result has them."""
        index = {name: linear(first, 1, x) for name, (x, first) in place.items()}
        tests = [
            below(index[name], self.extents[name])
            for name in names
            if self.extents[name] % self.tiles[name]
        ]

        def put() -> ir.Value:
            type = ir.VectorType.get([len(sums)], ir.F32Type.get())
            value = vector.FromElementsOp(type, sums).result
            image, *taps = image_and_taps(self.sizes, index["c"])
            address = linear(image, self.stored.of["C"], linear(group, self.stored.of["G"]))
            address = linear(index["r"], self.stored.of["K"], address)
            for tap, stride in zip(taps, self.stored.space, strict=True):
                address = linear(tap, stride, address)
            channel = linear(group, self.sizes.rows, index["r"])
            places = {"element": address, "channel": channel}
            extra = [one.read(load, places, len(sums)) for one in self.extra]
            value = self.result.finished(value, extra)
            at = [0 if name == "g" else place[name][0] for name in self.order]
            numbers = [arith.ConstantOp(ir.IndexType.get(), x).result for x in at]
            if len(sums) == 1:
                one = vector.ExtractOp(value, [], [0]).result
                return tensor.InsertOp(one, piece, numbers).result
            map = ir.AffineMap.get_minor_identity(len(numbers), 1)
            return vector.TransferWriteOp(piece.type, value, piece, numbers, map, [True]).result

        return put_where(both(*tests), piece, put)
