# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Join two products of a sum of f32 matrix instructions into one of xf32.

IREE 3.13 has no tile of `v_mfma_f32_16x16x8_xf32`. A lane has one number of either operand of a
16x16x4 product of f32, and two of a 16x16x8 of xf32. The order of gemm_k within a sum is free, as
long as both operands have the same:

    s1 = mfma 16x16x4 a0 * b0 + s0
    s2 = mfma 16x16x4 a1 * b1 + s1         s2 = mfma 16x16x8 [a0, a1] * [b0, b1] + s0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import vector

_PRODUCT = "amdgpu.mfma"
_SHAPE, _JOINED_K = {"m": 16, "n": 16, "k": 4}, 8


@dataclass(frozen=True, kw_only=True)
class JoinProducts:
    """No options. The last product of a sum of an odd number stays one of f32."""

    name: ClassVar[str] = "join-products"

    def apply(self, module: ir.Module) -> None:
        """Join the products of the module in place."""
        with module.context, ir.Location.unknown():
            for block in list(_blocks(module.operation)):
                _join(block)


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region:
            yield block
            for one in block:
                yield from _blocks(one.operation)


def _join(block: ir.Block) -> None:
    """Join the first two products of each sum, then the next two, and so on."""
    for op in [one.operation for one in block]:
        if not _is_f32(op):
            continue
        before = op.operands[2].owner
        first = before.operation if isinstance(before, ir.OpView | ir.Operation) else None
        if first is None or not _is_f32(first) or len(list(first.results[0].uses)) != 1:
            continue
        with ir.InsertionPoint(op), op.location:
            a, b = (_pair(first.operands[number], op.operands[number]) for number in (0, 1))
            i32 = ir.IntegerType.get_signless(32)
            attributes = {name: op.attributes[name] for name in op.attributes}
            attributes |= {
                "k": ir.IntegerAttr.get(i32, _JOINED_K),
                "reducePrecision": ir.UnitAttr.get(),
            }
            joined = ir.Operation.create(
                _PRODUCT,
                results=[op.results[0].type],
                operands=[a, b, first.operands[2]],
                attributes=attributes,
            )
        op.results[0].replace_all_uses_with(joined.results[0])
        op.erase()
        first.erase()


def _is_f32(op: ir.Operation) -> bool:
    """Whether it is a product of f32 of the shape that can be joined."""
    if op.name != _PRODUCT or not isinstance(_element(op.operands[0]), ir.F32Type):
        return False
    return all(ir.IntegerAttr(op.attributes[name]).value == size for name, size in _SHAPE.items())


def _element(value: ir.Value) -> ir.Type:
    type = value.type
    return type.element_type if isinstance(type, ir.VectorType) else type


def _pair(first: ir.Value, second: ir.Value) -> ir.Value:
    """Two numbers of f32, each alone or as a vector of one, as a vector."""
    type = ir.VectorType.get([2], ir.F32Type.get())
    scalars = [
        vector.ExtractOp(one, [], [0]).result if isinstance(one.type, ir.VectorType) else one
        for one in (first, second)
    ]
    return vector.FromElementsOp(type, scalars).result
