# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions that find the addresses of an operand's rows, by the order of the loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.cost_constants import LOOP, LoopInstructions
from conv_compiler.strategies.gpu.loop_order import along_gemm_k
from conv_compiler.strategies.gpu.tail_masking import is_cdna

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.gpu.loop_order import ReductionLoops
    from conv_compiler.targets import Target


class Addresses(NamedTuple):
    """Vector instructions to find an address, for each row that a thread reads of an operand."""

    a: float
    b: float


def has_batch_alone(problem: ConvProblem, target: Target, loops: ReductionLoops) -> bool:
    """Whether gemm_k of a tile counts as the batch: pixels are outside, or there is a single one.

    There is one in `fwd` and `bwd_data` of 1x1 filters: their pixels are columns, their channels
    the batch.
    """
    outside, inside = loops
    if outside:
        return inside == ("n",)
    counted = is_cdna(target) or min(along_gemm_k(problem, target)) > 1
    return counted and max(problem.out_image) == 1


def address_costs(
    problem: ConvProblem,
    target: Target,
    loops: ReductionLoops,
    taps_in_rows: bool,
    costs: LoopInstructions = LOOP,
) -> Addresses:
    """Vector instructions a row that a thread reads, of operands a and b, in the order of loops."""
    if has_batch_alone(problem, target, loops):
        order = "batch"
    elif loops[0]:
        order = "rows"
    else:
        order = "pointwise" if problem.is_pointwise else "flat"
    plain, window = (
        getattr(costs, f"{order}_{side}_row_instructions") for side in ("plain", "window")
    )
    return Addresses(window, plain) if taps_in_rows else Addresses(plain, window)
