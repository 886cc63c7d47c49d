# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least time a problem can take on a chip, whatever the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.model.estimate import chip_lanes
from conv_compiler.model.facts import chip_facts
from conv_compiler.targets.f8 import multiplied

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def peak_flops(operands: tuple[str, str], target: Target) -> float:
    """Operations a second of the chip's fastest matrix instruction of two types.

    Where it has none, of vector fma: one a lane and issue.
    """
    chip = chip_facts(target)
    rates = [2 * row.m * row.n * row.k / row.subgroup_cycles for row in target.mma_for(*operands)]
    a_cycle = max(rates, default=2 * chip_lanes(chip) / chip.valu_cycles)
    return a_cycle * chip.simds * chip.units * target.clock_ghz * 1e9


def least_seconds(problem: ConvProblem, target: Target) -> float:
    """The roofline: peak arithmetic or each tensor once over memory, and one launch.

    Caches that hold a tensor from one call to the next are left out, as in the model of a kernel.
    Raises UnsupportedTarget for chips without facts.
    """
    terms = problem.terms
    operands = (terms.dtype, terms.dtype) if terms else multiplied(problem, target)
    arithmetic = (terms.count if terms else 1) * problem.flops / peak_flops(operands, target)
    memory = problem.bytes / target.memory_gb_per_s / 1e9
    return max(arithmetic, memory) + chip_facts(target).launch_seconds
