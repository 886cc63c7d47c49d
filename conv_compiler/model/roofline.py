# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least time a problem can take on a chip, whatever the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.model.facts import chip_facts
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.targets.f8 import multiplied

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Work:
    """What any kernel of an operation does at least.

    `flops` are on operands of the types `operands` (A's and B's); `bytes` are those of all tensors,
    each once.
    """

    flops: float
    operands: tuple[str, str]
    bytes: float


def work_of(problem: ConvProblem, target: Target) -> Work:
    """The work of a problem, in the types that a target multiplies."""
    terms = problem.terms
    return Work(
        flops=(terms.count if terms else 1) * problem.flops,
        operands=(terms.dtype, terms.dtype) if terms else multiplied(problem, target),
        bytes=problem.bytes,
    )


def peak_flops(operands: tuple[str, str], target: Target) -> float:
    """Operations a second of the chip's fastest matrix instruction of two types.

    Where it has none, of its vector units in f32: RDNA's with dual issue.
    """
    chip = chip_facts(target)
    rates = [2 * row.m * row.n * row.k / row.subgroup_cycles for row in target.mma_for(*operands)]
    vector = target.vector_flops_per_clock * target.compute_units
    a_cycle = max(rates) * chip.simds * chip.units if rates else vector
    return a_cycle * target.clock_ghz * 1e9


def least(work: Work, target: Target) -> float:
    """The roofline at the peaks: arithmetic or each tensor once over memory, and one launch.

    Caches that hold a tensor from one call to the next are left out, as in the model of a kernel.
    Raises UnsupportedTarget for chips without facts.
    """
    arithmetic = work.flops / peak_flops(work.operands, target)
    memory = work.bytes / target.memory_gb_per_s / 1e9
    return max(arithmetic, memory) + chip_facts(target).launch_seconds


def sustained_least(work: Work, target: Target) -> float | None:
    """The same by the best rates that any kernel keeps up; None where none were published.

    A rate nobody published is the peak.
    """
    rates = target.sustained
    if rates is None:
        return None
    a, b = (_rate_type(one) for one in work.operands)
    matrix = rates.matrix_of(a) if a == b else None
    flops = matrix.tflops * 1e12 if matrix else peak_flops(work.operands, target)
    memory = work.bytes / rates.memory_best_gb_per_s / 1e9
    return max(work.flops / flops, memory) + chip_facts(target).launch_seconds


def _rate_type(dtype: str) -> str:
    """The row of sustained rates that a type belongs to."""
    return "f8" if DTYPES[dtype].is_f8 else dtype


def least_seconds(problem: ConvProblem, target: Target) -> float:
    """`least` of a problem."""
    return least(work_of(problem, target), target)


def sustained_least_seconds(problem: ConvProblem, target: Target) -> float | None:
    """`sustained_least` of a problem."""
    return sustained_least(work_of(problem, target), target)
