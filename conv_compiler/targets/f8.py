# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of 8 bits or fewer on targets without instructions for them: what is multiplied in their
place."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.dtypes import DTYPES, WIDER

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def is_emulated(problem: ConvProblem, target: Target) -> bool:
    """Whether a problem multiplies narrow floats that the target has no instruction for."""
    if problem.block_scales and not problem.compute and target.scaled_for(problem.dtype):
        return False
    return problem.operand_type.is_narrow and not target.mma_for(*problem.operand_dtypes)


def multiplied(problem: ConvProblem, target: Target) -> tuple[str, str]:
    """Types of the GEMM's operands on a target: of the output gradient, of the input."""
    a, b = problem.operand_dtypes
    return (WIDER, WIDER) if is_emulated(problem, target) else (a, b)


@lru_cache(maxsize=64)
def operand_bytes(problem: ConvProblem, target: Target) -> int:
    """Size of an element of either."""
    return DTYPES[multiplied(problem, target)[1]].bytes
