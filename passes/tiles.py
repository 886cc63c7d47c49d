"""Tile registers of AMX: blocks of 16 rows by 16 lanes that one instruction multiplies.

They are values of LLVM's type x86_amx. LLVM configures the registers, hands them out and releases
them (`llvm/lib/Target/X86/X86PreTileConfig.cpp`); all tiles of a kernel have one of three shapes.
Vectors become tiles and tiles vectors by way of the stack.
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.host import TILE_INSTRUCTIONS, TILE_ROWS, TileInstruction
from conv_compiler.passes.indices import constant, loops, plus, times
from conv_compiler.passes.packed_operands import stack_tensor
from conv_compiler.passes.products import Product, call_intrinsic, packed

# Bytes of a packed element and of a sum; of a row of sums.
ELEMENT_BYTES = 4
ROW_BYTES = TILE_ROWS * ELEMENT_BYTES


class Tiles:
    """Tiles whose products sum `depth` packed elements, in f32 or i32.

    The first factor has TILE_ROWS rows of `depth`, the second `depth` rows of TILE_ROWS.
    UnsupportedStrategy for an instruction that is not in the table, or a depth no tile has.
    """

    def __init__(self, instruction: str, depth: int, sums: ir.Type) -> None:
        row = TILE_INSTRUCTIONS.get(instruction)
        if row is None:
            raise UnsupportedStrategy(
                f"instruction {instruction}: not of tiles; known: {', '.join(TILE_INSTRUCTIONS)}"
            )
        if depth > TILE_ROWS:
            raise UnsupportedStrategy(
                f"steps of {depth}: a tile has {TILE_ROWS} rows; take {TILE_ROWS} or fewer"
            )
        i32, element = ir.IntegerType.get_signless(32), ir.Type.parse(row.element)
        self.depth, self.instruction = depth, row
        self.type = ir.Type.parse("!llvm.x86_amx")
        self.pointer = ir.Type.parse("!llvm.ptr")
        self.whole = ir.VectorType.get([TILE_ROWS * TILE_ROWS], i32)
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
        return self._call("tilezero", TILE_ROWS, ROW_BYTES)

    def read(self, row: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """Sums, of which `row` gives the vector of a number."""
        map = ir.AffineMap.get_identity(1)

        def a_row(at: list[ir.Value], stack: list[ir.Value]) -> list[ir.Value]:
            bits, place = vector.BitCastOp(self.row, row(at[0])).result, times(at[0], TILE_ROWS)
            return [vector.TransferWriteOp(stack[0].type, bits, *stack, [place], map, [True]).result]

        (stack,) = loops([TILE_ROWS], [self._stack()], a_row)
        return self._loaded(address_of(stack), TILE_ROWS, ROW_BYTES, ROW_BYTES)

    def write(
        self,
        tile: ir.Value,
        piece: ir.Value,
        put: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
    ) -> ir.Value:
        """A piece with sums in it: `put` takes it, a number and the vector of that number."""
        map, zero = ir.AffineMap.get_identity(1), ops.zero(self.product.element)
        bits = call_intrinsic("llvm.x86.cast.tile.to.vector", self.whole, [tile])
        stack = self._stack()
        stack = vector.TransferWriteOp(stack.type, bits, stack, [constant(0)], map, [True]).result

        def a_row(at: list[ir.Value], piece: list[ir.Value]) -> list[ir.Value]:
            place = [times(at[0], TILE_ROWS)]
            bits = vector.TransferReadOp(self.row, stack, place, map, zero, [True]).result
            return [put(piece[0], at[0], vector.BitCastOp(self.row_of_sums, bits).result)]

        return loops([TILE_ROWS], [piece], a_row)[0]

    def factor(self, address: ir.Value, stride: int, *, is_first: bool) -> ir.Value:
        """A factor that lies at an address, its rows so many elements apart."""
        rows, width = (TILE_ROWS, self.depth) if is_first else (self.depth, TILE_ROWS)
        return self._loaded(address, rows, width * ELEMENT_BYTES, stride * ELEMENT_BYTES)

    def _add(self, total: ir.Value, second: ir.Value, first: ir.Value) -> ir.Value:
        shape = (TILE_ROWS, ROW_BYTES, self.depth * ELEMENT_BYTES)
        return self._call(self.instruction.intrinsic, *shape, operands=(total, first, second))

    def _loaded(self, address: ir.Value, rows: int, bytes: int, stride: int) -> ir.Value:
        i64 = ir.IntegerType.get_signless(64)
        pointer = ir.Operation.create(
            "llvm.inttoptr",
            results=[self.pointer],
            operands=[arith.IndexCastOp(i64, address).result],
        ).results[0]
        apart = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, stride)).result
        return self._call("tileloadd64", rows, bytes, operands=(pointer, apart))

    def _call(self, name: str, *shape: int, operands: tuple[ir.Value, ...] = ()) -> ir.Value:
        i16 = ir.IntegerType.get_signless(16)
        sizes = [arith.ConstantOp(i16, ir.IntegerAttr.get(i16, size)).result for size in shape]
        return call_intrinsic(f"llvm.x86.{name}.internal", self.type, [*sizes, *operands])

    def _stack(self) -> ir.Value:
        return stack_tensor([TILE_ROWS * TILE_ROWS], self.product.element)


def address_of(value: ir.Value) -> ir.Value:
    """Where the elements of a tensor on the stack will lie, which is only read there."""
    type = ir.RankedTensorType(value.type)
    buffer = ir.Operation.create(
        "bufferization.to_buffer",
        results=[ir.MemRefType.get(type.shape, type.element_type)],
        operands=[value],
        attributes={"read_only": ir.UnitAttr.get()},
    ).results[0]
    found: ir.Value = ir.Operation.create(
        "memref.extract_aligned_pointer_as_index",
        results=[ir.IndexType.get()],
        operands=[buffer],
    ).results[0]
    return found


def element_address(address: ir.Value, element: ir.Value) -> ir.Value:
    """The address of an element so far behind an address."""
    return plus(address, times(element, ELEMENT_BYTES))
