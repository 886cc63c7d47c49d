# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions that find the addresses of an operand's rows, by the order of the loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.cost_constants import LOOP, LoopInstructions

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.gpu.loop_order import ReductionLoops


class Addresses(NamedTuple):
    """Vector instructions to find an address, for each row that a thread reads of an operand."""

    a: float
    b: float


def address_costs(
    problem: ConvProblem,
    loops: ReductionLoops,
    taps_in_rows: bool,
    costs: LoopInstructions = LOOP,
) -> Addresses:
    """Vector instructions a row that a thread reads, of operands a and b, in the order of loops."""
    outside, inside = loops
    if not outside:
        order = "pointwise" if problem.is_pointwise else "flat"
    else:
        order = "batch" if inside == ("n",) else "rows"
    plain, window = (
        getattr(costs, f"{order}_{side}_row_instructions") for side in ("plain", "window")
    )
    return Addresses(window, plain) if taps_in_rows else Addresses(plain, window)
