# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload of a convolution: the contraction of a weight gradient with other roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import contracted, finished, folded, grouped
from conv_compiler.problem.canonical import equivalent_wgrad

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem


def build_fwd(
    problem: ConvProblem, image: ir.Value, weight: ir.Value, *extra: ir.Value
) -> ir.Value:
    """The output of input and weight, and of d where the problem's elementwise op takes it."""
    image, weight = grouped(problem, "input", image), grouped(problem, "weight", weight)
    sums = contracted(equivalent_wgrad(problem), image, weight)
    return folded(problem, "output", finished(problem, sums, extra))
