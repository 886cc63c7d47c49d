# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an elementwise op reads beside its first operand."""

from __future__ import annotations

from iree.compiler import ir

from conv_compiler.ir import ops


def read_per(op: ir.Operation, number: int) -> str:
    """What an operand has a number for: each `element` of the result, each `channel` of it, or each
    `call` (`problem.elementwise.D_PER`)."""
    axes = len(ops.read_axes(op, number))
    return "element" if axes == len(ops.shape_of(op.results[0])) else "channel" if axes else "call"
