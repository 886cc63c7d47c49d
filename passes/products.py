"""Multiply-adds of vectors on the CPU, one row an instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.host import PAIR_INSTRUCTIONS, PairInstruction


@dataclass(frozen=True, kw_only=True)
class Product:
    """What operands are packed as, and how their products are added to sums.

    `element` is the type of a packed element, `lanes` how many are multiplied at once. `pack` takes
    vectors of an operand's own type, two where elements are pairs; `add` sums, and two packed ones.
    """

    element: ir.Type
    lanes: int
    pack: Callable[[Sequence[ir.Value]], ir.Value]
    add: Callable[[ir.Value, ir.Value, ir.Value], ir.Value]


def product_of(instruction: str, sums: ir.VectorType) -> Product:
    """`fma`, the multiply-add of elements widened to the sums' type, or a row of
    PAIR_INSTRUCTIONS."""
    if instruction == "fma":
        return _multiply_add(sums)
    if row := PAIR_INSTRUCTIONS.get(instruction):
        return _pairs(row, sums)
    known = ", ".join(("fma", *PAIR_INSTRUCTIONS))
    raise UnsupportedStrategy(f"instruction {instruction}: not in the table; known: {known}")


def _multiply_add(sums: ir.VectorType) -> Product:
    def add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(sums.element_type, ir.IntegerType):
            return arith.AddIOp(total, arith.MulIOp(a, b).result).result
        # One instruction where the CPU has it, two where it has not.
        product = arith.MulFOp(a, b, fastmath=arith.FastMathFlags.contract).result
        return arith.AddFOp(product, total, fastmath=arith.FastMathFlags.contract).result

    return Product(
        element=sums.element_type,
        lanes=sums.shape[0],
        pack=lambda parts: _widened(parts[0], sums.element_type),
        add=add,
    )


def _widened(value: ir.Value, element: ir.Type) -> ir.Value:
    """A vector in a type that holds all its values."""
    type = ir.VectorType(value.type)
    if type.element_type == element:
        return value
    widen = arith.ExtSIOp if isinstance(element, ir.IntegerType) else arith.ExtFOp
    return widen(ir.VectorType.get(type.shape, element), value).result


def _pairs(row: PairInstruction, sums: ir.VectorType) -> Product:
    (lanes,) = sums.shape
    element = ir.Type.parse(row.element)
    i16, i32 = (ir.IntegerType.get_signless(bits) for bits in (16, 32))
    pairs = ir.VectorType.get([2 * lanes], element)

    def pack(parts: Sequence[ir.Value]) -> ir.Value:
        shape = ir.VectorType(parts[0].type).shape
        halves = []
        for part in parts:
            bits = _widened(part, element)
            if element != i16:
                bits = arith.BitcastOp(ir.VectorType.get(shape, i16), bits).result
            halves.append(arith.ExtUIOp(ir.VectorType.get(shape, i32), bits).result)
        low, high = halves
        sixteen = ir.DenseElementsAttr.get_splat(high.type, ir.IntegerAttr.get(i32, 16))
        shifted = arith.ShLIOp(high, arith.ConstantOp(high.type, sixteen).result).result
        return arith.OrIOp(low, shifted).result

    def add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        a, b = (vector.BitCastOp(pairs, x).result for x in (a, b))
        call = ir.Operation.create(
            "llvm.call_intrinsic",
            results=[sums],
            operands=[total, a, b],
            attributes={
                "intrin": ir.StringAttr.get(row.intrinsic.format(bits=32 * lanes)),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )
        result: ir.Value = call.results[0]
        return result

    return Product(element=i32, lanes=lanes, pack=pack, add=add)
