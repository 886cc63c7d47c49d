# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of f32 rounded to a narrower type by one instruction.

IREE writes a rounding to bf16 out as seven integer instructions a vector
(`arith::populateExpandBFloat16Patterns` in its ConvertToLLVM.cpp), whatever the CPU has.
"""

from __future__ import annotations

import math

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.cpu_kernel.products import call_intrinsic
from conv_compiler.targets.host import ROUNDING_INSTRUCTIONS


def round_vectors(root: ir.Operation, instruction: str) -> None:
    """Round by the instruction where vectors fill registers that it takes.

    Raises UnsupportedStrategy for an instruction that is not in the table.
    """
    row = ROUNDING_INSTRUCTIONS.get(instruction)
    if row is None:
        known = ", ".join(ROUNDING_INSTRUCTIONS)
        raise UnsupportedStrategy(f"rounding {instruction}: not in the table; known: {known}")
    found: list[ir.Operation] = []

    def meet(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.truncf" and isinstance(op.results[0].type, ir.VectorType):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(meet)
    f32, narrow = ir.F32Type.get(root.context), ir.Type.parse(row.dtype, root.context)
    for op in found:
        type, wide = (ir.VectorType(value.type) for value in (op.results[0], op.operands[0]))
        bits = 32 * math.prod(wide.shape) if wide.rank == 1 else 0
        if (type.element_type, wide.element_type) != (narrow, f32) or bits not in row.bits:
            continue
        with ir.InsertionPoint(op), op.location:
            name = row.intrinsic.format(bits=bits)
            (made,) = call_intrinsic(name, [type], [op.operands[0]])
        op.results[0].replace_all_uses_with(made)
        op.erase()
