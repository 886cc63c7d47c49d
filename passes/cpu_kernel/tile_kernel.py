# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of `vector-kernel` with sums in tile registers (`amx_ops.py`).

    for tiles of `tile`, e.g. 32 k, 1 y, 1 x, 32 c           four tiles of sums
      for summed iterations, e.g. 14 of wo at a time
        sums[16 k][16 c] += gradient[16 k][14 wo] * image[14 wo][16 c]

or with the roles of k and c changed. One operand has the lanes of the sums, innermost in its copy.
The other one has their rows. Innermost in its copy is the loop of which the instruction sums
several iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir.loop_nest import LoopNest
from conv_compiler.passes.cpu_kernel.amx_ops import (
    ELEMENT_BYTES,
    Tiles,
    address_of,
    element_address,
)
from conv_compiler.passes.cpu_kernel.amx_sums import TILE_BYTES, ResultSums, StackSums
from conv_compiler.passes.cpu_kernel.epilogues import Epilogue
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus
from conv_compiler.passes.cpu_kernel.kernel import Kernel
from conv_compiler.passes.cpu_kernel.packed_operands import PackedOperand
from conv_compiler.passes.cpu_kernel.products import Product
from conv_compiler.passes.cpu_kernel.readers import Reader
from conv_compiler.targets.host import STACK_BYTES, TILE_REGISTERS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.options import KernelOptions


class TileKernel(Kernel):
    """The kernel of one contraction while it is written: sums in tiles."""

    def __init__(self, nest: LoopNest, options: KernelOptions, epilogue: Epilogue | None) -> None:
        super().__init__(nest, options, epilogue)
        tall, wide = (nest.indices[number] for number in (self.tall, 1 - self.tall))
        elsewhere = {loop for axis in wide for loop in axis}
        # Taps stand with pixels in one axis, if there are several pixels.
        alone = [loop for axis in tall if len(axis) == 1 for loop in axis]
        rows = [loop for loop in alone if loop in nest.parallel and loop not in elsewhere]
        rows = [loop for loop in rows if self.tile[loop] % TILE_ROWS == 0] or rows
        if len(rows) != 1 or any(self.last in axis for axis in tall):
            raise UnsupportedStrategy(
                f"lanes {self.last}: one operand must have them, the other one a loop for the rows "
                "of tiles; order the loops"
            )
        self.rows = rows[0]
        self.taps = [
            loop
            for loop in nest.parallel
            if any(loop in axis and len(axis) > 1 for axis in nest.indices[0])
            and loop not in (self.rows, self.last)
        ]
        self.blocks[self.rows] = TILE_ROWS
        for loop in (self.rows, self.last):
            if self.tile[loop] % TILE_ROWS:
                raise UnsupportedStrategy(
                    f"tile {self.tile[loop]} of {loop}: not whole tiles of {TILE_ROWS}; "
                    "pad the loop"
                )

    def _product(self) -> Product:
        nest, options = self.nest, self.options
        self.steps = dict(zip(self.summed, options.steps, strict=True))
        uneven = [
            p
            for p, step in self.steps.items()
            if step < 1 or self.cache[p] % step or nest.sizes[p] % step
        ]
        deep = [p for p, step in self.steps.items() if step > 1]
        if uneven or len(deep) != 1:
            raise UnsupportedStrategy(
                f"steps {options.steps}: one of them must be more than 1, and divide its loop and "
                f"its cache tile; give one for each of {' '.join(self.summed)}"
            )
        (self.deep,) = deep
        depth = self.steps[self.deep]
        self.tiles = Tiles(options.instruction, depth, self.element, rows_of=self.tall)
        return self.tiles.product

    @property
    def tall(self) -> int:
        """The operand that has the rows of sums: 0 or 1."""
        return int(any(self.last in axis for axis in self.nest.indices[0]))

    @property
    def lanes(self) -> tuple[str, str]:
        """The lanes of the sums, and the loop that is summed."""
        return (self.last, self.deep) if self.tall else (self.deep, self.last)

    @property
    def reader(self) -> Reader:
        """Tiles are loaded by rows, which lie one behind the other where they can."""
        deep = {loop: step for loop, step in self.steps.items() if step > 1}
        return Reader(tile=self.tile, lanes=self.product.lanes, steps=deep)

    def asks_ahead(self, copied: Sequence[PackedOperand]) -> bool:
        """It made no difference: the second cache is what these kernels wait for."""
        return False

    def over_tiles(
        self,
        tiles: Sequence[int],
        values: list[ir.Value],
        body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Taps innermost: both operands of the tiles of all taps stay in the first cache."""
        names = self.nest.parallel
        order = sorted(range(len(names)), key=lambda axis: names[axis] in self.taps)

        def in_order(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            place = dict(zip(order, at, strict=True))
            return body([place[axis] for axis in range(len(names))], values)

        return loops([tiles[axis] for axis in order], values, in_order)

    def zero(self) -> ir.Value:
        """A tile of sums of nothing."""
        return self.tiles.zero()

    def cleared(self, piece: ir.Value, tiles: Sequence[int]) -> ir.Value:
        """Zeros for the sums of all tiles, and a place where they wait."""
        blocks, rows = len(self.offsets()), self.nest.parallel.index(self.rows)
        copies = sum(o.layout.length for o in self.copied) * ELEMENT_BYTES
        fits = copies + math.prod(tiles) * blocks * TILE_BYTES <= STACK_BYTES
        self.waiting = StackSums(tiles, blocks, self.element) if fits else ResultSums(piece, rows)

        def clear(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            self.keep(piece, at, self.zeros())
            return values

        loops(tiles, [], clear)
        return piece

    def kept(self, piece: ir.Value, tile: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of a tile as the chunk before left them."""
        return [self.tiles.kept(*at) for at in self.waiting.where(tile, self.places(tile))]

    def keep(self, piece: ir.Value, tile: Sequence[ir.Value], sums: Sequence[ir.Value]) -> ir.Value:
        """The piece; the sums of a tile are kept for the next chunk."""
        for at, one in zip(self.waiting.where(tile, self.places(tile)), sums, strict=True):
            self.tiles.keep(*at, one)
        return piece

    def finished(self, piece: ir.Value, tiles: Sequence[int]) -> ir.Value:
        """The piece with the sums of all tiles in it, behind the last chunk."""
        return loops(
            tiles,
            [piece],
            lambda at, values: [self.write(values[0], at, self.kept(values[0], at))],
        )[0]

    @property
    def loads_first(self) -> bool:
        """Where registers hold them all: a load into one in use would wait for its products."""
        factors = sum(
            len({operand.distance(offsets) for offsets in self.offsets()})
            for operand in self.operands
        )
        return len(self.offsets()) + factors <= TILE_REGISTERS

    def handle(self, source: ir.Value) -> ir.Value:
        """The address of an operand's copy."""
        return address_of(source)

    def load(self, number: int, source: ir.Value, base: ir.Value, distance: int) -> ir.Value:
        """A tile of either operand."""
        is_tall = number == self.tall
        stride = self.operands[number].apart(self.rows if is_tall else self.deep)
        address = element_address(source, plus(base, constant(distance)))
        return self.tiles.factor(address, stride, has_rows=is_tall)

    def with_block(self, piece: ir.Value, at: Sequence[ir.Value], value: ir.Value) -> ir.Value:
        """The piece with a tile of sums in its place, row by row."""
        return self.tiles.write(
            value, piece, lambda piece, row, one: self._with_row(piece, at, row, one)
        )

    def _with_row(
        self, piece: ir.Value, at: Sequence[ir.Value], row: ir.Value, value: ir.Value
    ) -> ir.Value:
        return super().with_block(piece, self._place(at, row), value)

    def _place(self, at: Sequence[ir.Value], row: ir.Value) -> list[ir.Value]:
        """Indices in a piece of a row of the tile that stands there."""
        axis = self.nest.parallel.index(self.rows)
        return [plus(i, row) if n == axis else i for n, i in enumerate(at)]
