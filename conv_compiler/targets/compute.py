# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a target makes of what a problem's `compute` leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES, STANDS_FOR_TF32, TF32, WIDER

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def for_target(problem: ConvProblem, target: Target, mma: str | None = None) -> ConvProblem:
    """The problem with `compute` as a target has it: the problem itself where it says all.

    `bf8` and `fp8` become the 8-bit floats of the chip. A gradient whose data the chip's matrix
    instructions would flush is computed in what the chip's row names. But not where `mma`, the
    instruction of a strategy that is known already, is of another type or empty: vector code
    flushes nothing. Elements with block scales are multiplied as bf16, which holds what they and
    their scale stand for, unless by an instruction that takes scales.
    """
    if problem.sums_alone:
        return problem
    if problem.block_scales:
        scaled = target.scaled_for(problem.dtype)
        takes_scales = scaled and mma in (None, scaled.name) and not problem.compute
        return problem if takes_scales else replace(problem, compute=WIDER)
    result = DIRECTIONS[problem.direction][1]
    instead = dict(target.gradients_as).get(problem.dtype, "")
    if instead and not problem.compute and result.startswith("d_"):
        dtype = CONVERSIONS[instead].dtype
        fitting = {
            row.name for row in (*target.mma_for(dtype), *target.blocks) if row.dtype == dtype
        }
        return replace(problem, compute=instead) if mma is None or mma in fitting else problem
    named = problem.for_kind(target.has_fnuz, target.has_xf32)
    row = DTYPES[named.operand_dtypes[0]]
    if row.multiplied_only and not target.multiplies(row.name):
        raise UnsupportedProblem(
            f"compute {named.compute}: {target.name} has no instruction for it; use "
            f"{STANDS_FOR_TF32[1]}, or {TF32} for what the target has"
        )
    return named
