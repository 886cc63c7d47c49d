# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem with block scales as one of the numbers that elements and scales stand for.

A kernel for each operand makes these in front (`build/block_scales.py`), and schedules know the
problem of plain operands. One kind of schedule takes elements and scales in their place
(`passes/scaled_gemm.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.dtypes import WIDER


@dataclass(frozen=True, kw_only=True)
class Decoded(ConvProblem):
    """The problem of the numbers where what is multiplied may be elements of the type `elements`,
    and their scales: nothing else is made of them first."""

    elements: str

    __hash__ = ConvProblem.__hash__


def decoded(problem: ConvProblem) -> ConvProblem:
    """The problem of bf16 operands; itself where operands are plain."""
    return _decoded(problem) if problem.block_scales else problem


@lru_cache(maxsize=256)
def _decoded(problem: ConvProblem) -> ConvProblem:
    alone = problem.operand_ops == (None, None) and not (problem.pad_mode or problem.compute)
    if not alone:
        return replace(problem, dtype=WIDER, compute="", block_scales="")
    values = {name: getattr(problem, name) for name in ConvProblem.__dataclass_fields__}
    return Decoded(**{**values, "dtype": WIDER, "block_scales": ""}, elements=problem.dtype)
