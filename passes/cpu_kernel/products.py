# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiply-adds of vectors on the CPU, one row an instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.targets.host import PAIR_INSTRUCTIONS, PairInstruction


@dataclass(frozen=True, kw_only=True)
class Product:
    """What operands are packed as, and how their products are added to sums.

    `element` is the type of a packed element, which holds `factors` of an operand's own; `lanes` of
    them are multiplied at once. `pack` takes as many vectors of the operand's type; `add` sums, and
    two packed ones.
    """

    element: ir.Type
    lanes: int
    factors: int
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
        factors=1,
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


def packed(element: ir.Type, parts: Sequence[ir.Value]) -> ir.Value:
    """Vectors of two or four, widened to 16 or 8 bits, as one of 32 bits; the first in the low
    bits."""
    shape, bits = ir.VectorType(parts[0].type).shape, 32 // len(parts)
    narrow, i32 = (ir.IntegerType.get_signless(width) for width in (bits, 32))
    whole = ir.VectorType.get(shape, i32)
    total: ir.Value | None = None
    for place, part in enumerate(parts):
        value = _widened(part, element)
        if element != narrow:
            value = arith.BitcastOp(ir.VectorType.get(shape, narrow), value).result
        value = arith.ExtUIOp(whole, value).result
        if total is None:
            total = value
            continue
        shift = ir.DenseElementsAttr.get_splat(whole, ir.IntegerAttr.get(i32, place * bits))
        value = arith.ShLIOp(value, arith.ConstantOp(whole, shift).result).result
        total = arith.OrIOp(total, value).result
    assert total is not None
    return total


def call_intrinsic(
    name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value]
) -> list[ir.Value]:
    """What one of LLVM's intrinsics gives."""
    call = ir.Operation.create(
        "llvm.call_intrinsic",
        results=results,
        operands=operands,
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return list(call.results)


def _pairs(row: PairInstruction, sums: ir.VectorType) -> Product:
    (lanes,) = sums.shape
    element = ir.Type.parse(row.element)
    pairs = ir.VectorType.get([2 * lanes], element)

    def add(total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        a, b = (vector.BitCastOp(pairs, x).result for x in (a, b))
        name = row.intrinsic.format(bits=32 * lanes)
        (made,) = call_intrinsic(name, [sums], [total, a, b])
        return made

    return Product(
        element=ir.IntegerType.get_signless(32),
        lanes=lanes,
        factors=2,
        pack=lambda parts: packed(element, parts),
        add=add,
    )
