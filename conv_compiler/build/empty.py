# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload of a batch of 0: sums of no products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import finished, folded

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem


def build_empty(problem: ConvProblem, *extra: ir.Value) -> ir.Value:
    """The result of sums that are all 0: of a weight gradient what the elementwise op makes of
    them, and of the other directions a tensor of no elements."""
    from conv_compiler.ir import ops

    name = problem.tensors[2]
    letters: str = getattr(problem.layout_row.grouped, name)
    sums = ops.filled(problem.shape(letters), ops.element_type(problem.accumulator_type))
    return folded(problem, name, finished(problem, sums, extra))
