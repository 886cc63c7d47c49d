# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""8-bit floats behind a kernel's sums, by Hopper's own conversions.

IREE 3.13 compiles none of them for CUDA, and what it writes out for others loses numbers
(`passes/emulate_f8.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.ir.f8 import row_of
from conv_compiler.passes.depthwise_parts.operands import on_vectors
from conv_compiler.passes.wgmma_parts import ptx


def applied(op: ir.Operation, values: Sequence[ir.Value]) -> ir.Value:
    """`on_vectors`, with the chip's conversions where the op reads or makes 8-bit floats."""
    made = on_vectors(op, values)
    for value in values:
        _convert_reads(value)
    row, last = row_of(_element(made)), made.owner
    if row is None:
        return made
    wide = last.operands[0]
    last.erase()
    return _narrowed(wide, row.name)


def _convert_reads(value: ir.Value) -> None:
    """Widen a vector of 8-bit floats where ops do."""
    row = row_of(_element(value))
    for use in list(value.uses) if row else ():
        op = use.owner
        assert row is not None
        with ir.InsertionPoint(op):
            wide = _widened(value, row.name)
        op.results[0].replace_all_uses_with(wide)
        op.erase()


def _narrowed(wide: ir.Value, dtype: str) -> ir.Value:
    """A vector of f32 as 8-bit floats, two of them by an instruction."""
    values = _elements(wide)
    count = len(values)
    if count % 2:
        values.append(ops.zero(ir.F32Type.get()))
    pairs = [
        ptx.narrowed_pair(low, high, dtype)
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]
    found = _bits(_vector(pairs), ir.Type.parse(dtype), 2 * len(pairs))
    return found if count == 2 * len(pairs) else _vector(_elements(found)[:count])


def _widened(narrow: ir.Value, dtype: str) -> ir.Value:
    """A vector of 8-bit floats as f32, two of them by an instruction."""
    byte, pair = (ir.IntegerType.get_signless(bits) for bits in (8, 16))
    count = ir.VectorType(narrow.type).shape[0]
    values = _elements(_bits(narrow, byte, count))
    if count % 2:
        values.append(ops.zero(byte))
    halves: list[ir.Value] = []
    for at in range(0, len(values), 2):
        (both,) = _elements(_bits(_vector(values[at : at + 2]), pair, 1))
        word = ptx.widened_pair(both, dtype)
        halves += _elements(_bits(_vector([word]), ir.F16Type.get(), 2))
    f32 = ir.F32Type.get()
    return _vector([arith.ExtFOp(f32, one).result for one in halves[:count]])


def _element(vector: ir.Value) -> ir.Type:
    return ir.VectorType(vector.type).element_type


def _bits(vector: ir.Value, element: ir.Type, count: int) -> ir.Value:
    type = ir.VectorType.get([count], element)
    made = ir.Operation.create("vector.bitcast", results=[type], operands=[vector])
    found: ir.Value = made.results[0]
    return found


def _vector(values: Sequence[ir.Value]) -> ir.Value:
    type = ir.VectorType.get([len(values)], values[0].type)
    made = ir.Operation.create("vector.from_elements", results=[type], operands=list(values))
    found: ir.Value = made.results[0]
    return found


def _elements(vector: ir.Value) -> list[ir.Value]:
    type = ir.VectorType(vector.type)
    taken = ir.Operation.create(
        "vector.to_elements", results=[type.element_type] * type.shape[0], operands=[vector]
    )
    return list(taken.results)
