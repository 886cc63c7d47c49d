# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem with block scales as one of the numbers that elements and scales stand for.

A kernel for each operand makes these in front (`build/block_scales.py`). Schedules know the problem
of plain operands alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.dtypes import WIDER

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


def decoded(problem: ConvProblem) -> ConvProblem:
    """The problem of bf16 operands; itself where operands are plain."""
    return _decoded(problem) if problem.block_scales else problem


@lru_cache(maxsize=256)
def _decoded(problem: ConvProblem) -> ConvProblem:
    return replace(problem, dtype=WIDER, compute="", block_scales="")
