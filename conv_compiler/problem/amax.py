# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest absolute value of a result, beside it: of which numbers it is.

Composable Kernel's `convscale_amax` (example 62 of composable_kernel @58e9c6118,
`convscale_reduce`) writes sums in f32 behind the scales of its operands and an activation. One
kernel scales and rounds these numbers, others find the largest. So it is here: they are what the
ops in front of a last factor of the call give.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.directions import COMPUTED
from conv_compiler.problem.elementwise import Fused

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.problem.shapes import Shapes

# What the second result is called.
AMAX = "amax"


def split_ops(problem: Shapes) -> tuple[Fused | None, Fused | None]:
    """The elementwise op as the ops in front of the numbers, and the factor behind them."""
    steps = problem.fused.steps if problem.fused else ()
    behind = steps[-1:] if steps and steps[-1].row.d_per == "call" else ()
    before = steps[: len(steps) - len(behind)]
    return (
        Fused(steps=before) if before else None,
        Fused(steps=behind) if behind else None,
    )


def in_front(problem: ConvProblem) -> ConvProblem:
    """The problem whose result is the numbers, in the type of its sums; itself where no largest
    one is asked for."""
    return _in_front(problem) if problem.amax else problem


@lru_cache(maxsize=256)
def _in_front(problem: ConvProblem) -> ConvProblem:
    before, _ = split_ops(problem)
    return replace(
        problem,
        amax=False,
        weight_dtype=problem.accumulator_type.name,
        elementwise=before.text if before else "",
    )


def results_of(problem: Shapes) -> tuple[str, ...]:
    """Names of what a call gives."""
    return (COMPUTED[problem.direction][1], *([AMAX] * problem.amax))
