# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile registers of AMX: blocks of 16 rows by 16 lanes that one instruction multiplies.

They are values of LLVM's type x86_amx. LLVM configures the registers, hands them out and releases
them (`llvm/lib/Target/X86/X86PreTileConfig.cpp`); all tiles of a kernel have one of three shapes.
Vectors become tiles and tiles vectors by way of the stack.
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.addresses import Address, as_long, pointer
from conv_compiler.passes.cpu_kernel.indices import constant, loops, plus, times
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.passes.cpu_kernel.products import Product, call_intrinsic, packed
from conv_compiler.targets.host import TILE_INSTRUCTIONS, TILE_ROWS

# Bytes of a packed element and of a sum; of a row of sums.
ELEMENT_BYTES = 4
ROW_BYTES = TILE_ROWS * ELEMENT_BYTES


class Tiles:
    """Tiles whose products sum `depth` packed elements, in f32 or i32.

    The factor of the operand `rows_of`, which has the rows of sums, has `rows` rows of `depth`;
    that of the other one, which has the lanes, `depth` rows of TILE_ROWS.
    UnsupportedStrategy for an instruction that is not in the table, or for rows no tile has.
    """

    def __init__(
        self,
        instruction: str,
        depth: int,
        sums: ir.Type,
        *,
        rows_of: int = 1,
        rows: int = TILE_ROWS,
    ) -> None:
        row = TILE_INSTRUCTIONS.get(instruction)
        if row is None:
            raise UnsupportedStrategy(
                f"instruction {instruction}: not of tiles; known: {', '.join(TILE_INSTRUCTIONS)}"
            )
        if max(depth, rows) > TILE_ROWS:
            raise UnsupportedStrategy(
                f"steps of {depth}, {rows} rows: a tile has {TILE_ROWS} rows; take {TILE_ROWS} or "
                "fewer"
            )
        i32, element = ir.IntegerType.get_signless(32), ir.Type.parse(row.element)
        self.depth, self.instruction, self.rows_of, self.rows = depth, row, rows_of, rows
        self.type = ir.Type.parse("!llvm.x86_amx")
        self.whole = ir.VectorType.get([rows * TILE_ROWS], i32)
        self.row = ir.VectorType.get([TILE_ROWS], i32)
        self.row_of_sums = ir.VectorType.get([TILE_ROWS], sums)
        self.product = Product(
            element=i32,
            lanes=TILE_ROWS,
            factors=row.products,
            pack=lambda parts: packed(element, parts),
            add=self._add,
        )

    def zero(self) -> ir.Value:
        """Sums of nothing."""
        return self._made("tilezero", self.rows, ROW_BYTES)

    def kept(self, address: ir.Value, stride: ir.Value) -> ir.Value:
        """A tile of sums that was kept at an address, its rows so many bytes apart."""
        place = (pointer(address), as_long(stride))
        return self._made("tileloadd64", self.rows, ROW_BYTES, operands=place)

    def keep(self, address: ir.Value, stride: ir.Value, tile: ir.Value) -> None:
        """Keep a tile of sums at an address, its rows so many bytes apart."""
        place = (pointer(address), as_long(stride))
        self.call("tilestored64.internal", (self.rows, ROW_BYTES), (*place, tile), ())

    def kept_row(self, address: ir.Value, number: int) -> ir.Value:
        """A row of a tile that was kept at an address, its rows one behind another."""
        align = {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ROW_BYTES)}
        at = pointer(plus(address, constant(number * ROW_BYTES)))
        read = ir.Operation.create("llvm.load", [self.row_of_sums], [at], attributes=align)
        found: ir.Value = read.results[0]
        return found

    def write(
        self,
        tile: ir.Value,
        piece: ir.Value,
        put: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
    ) -> ir.Value:
        """A piece with sums in it: `put` takes it, a number and the vector of that number."""
        map, zero = ir.AffineMap.get_identity(1), ops.zero(self.product.element)
        (bits,) = self.call("cast.tile.to.vector", (), (tile,), (self.whole,))
        stack = stack_tensor([self.rows * TILE_ROWS], self.product.element)
        stack = vector.TransferWriteOp(stack.type, bits, stack, [constant(0)], map, [True]).result

        def a_row(at: list[ir.Value], piece: list[ir.Value]) -> list[ir.Value]:
            place = [times(at[0], TILE_ROWS)]
            bits = vector.TransferReadOp(self.row, stack, place, map, zero, [True]).result
            return [put(piece[0], at[0], vector.BitCastOp(self.row_of_sums, bits).result)]

        return loops([self.rows], [piece], a_row)[0]

    def factor(self, address: ir.Value, stride: int, *, has_rows: bool) -> ir.Value:
        """A factor that lies at an address, its rows so many elements apart."""
        rows, width = (self.rows, self.depth) if has_rows else (self.depth, TILE_ROWS)
        place = (pointer(address), as_long(constant(stride * ELEMENT_BYTES)))
        return self._made("tileloadd64", rows, width * ELEMENT_BYTES, operands=place)

    def _add(self, total: ir.Value, *factors: ir.Value) -> ir.Value:
        rows, lanes = factors[self.rows_of], factors[1 - self.rows_of]
        shape = (self.rows, ROW_BYTES, self.depth * ELEMENT_BYTES)
        return self._made(self.instruction.name, *shape, operands=(total, rows, lanes))

    def _made(self, name: str, *shape: int, operands: tuple[ir.Value, ...] = ()) -> ir.Value:
        (made,) = self.call(f"{name}.internal", shape, operands, (self.type,))
        return made

    def call(
        self,
        name: str,
        shape: tuple[int, ...],
        operands: tuple[ir.Value, ...],
        results: tuple[ir.Type, ...],
    ) -> list[ir.Value]:
        """What an intrinsic of x86 gives, for tiles of a shape: rows first, then bytes of a row."""
        i16 = ir.IntegerType.get_signless(16)
        sizes = [arith.ConstantOp(i16, ir.IntegerAttr.get(i16, size)).result for size in shape]
        return call_intrinsic(f"llvm.x86.{name}", results, [*sizes, *operands])


def address_of(value: ir.Value) -> ir.Value:
    """Where the first element of a tensor of one axis lies, which is only read there."""
    return Address(value).of([constant(0)])


def element_address(address: ir.Value, element: ir.Value) -> ir.Value:
    """The address of an element so far behind an address."""
    return plus(address, times(element, ELEMENT_BYTES))
