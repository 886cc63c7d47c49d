# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least time a problem can take on a chip, whatever the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.model.facts import chip_facts
from conv_compiler.model.met_pixels import met_share
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
        bytes=least_bytes(problem),
    )


def least_bytes(problem: ConvProblem) -> int:
    """Operands, result and d, each moved once, without the pixels that no tap of a read image
    meets: a filter of 1x1 with stride 2 reads a quarter of them."""
    if "input" not in problem.tensors[:2]:
        return problem.bytes
    image = problem.data_type.bytes_of(math.prod(problem.input_shape))
    return problem.bytes - round(image * (1 - met_share(problem, line_bytes=1)))


def peak_flops(operands: tuple[str, str], target: Target) -> float:
    """Operations a second of the chip's fastest matrix instruction of two types.

    Where it has none, of its vector units in f32: RDNA's with dual issue. NVIDIA's waves multiply
    TF32 at half the rate of f16 (white papers of A100, AD102 and H100).
    """
    chip = chip_facts(target)
    is_tf32 = operands == ("xf32", "xf32") and "xf32" in target.mma_sync
    rows = target.mma_for("f16") if is_tf32 else target.mma_for(*operands)
    if not rows and (scaled := target.scaled_for(operands[0])):
        rows = (scaled,)
    rates = [2 * row.m * row.n * row.k / row.subgroup_cycles / (1 + is_tf32) for row in rows]
    vector = target.vector_flops_per_clock * target.compute_units
    a_cycle = max(rates) * chip.simds * chip.units if rates else vector
    return a_cycle * target.clock_ghz * 1e9


def least(work: Work, target: Target, resident: bool = False) -> float:
    """The roofline at the peaks: arithmetic or each tensor once over memory, and one launch.

    Caches that hold a tensor from one call to the next are left out, as in the model of a kernel.
    `resident` is for a call that is repeated: tensors that all fit in the last-level cache come
    from there, at any speed where none is known. Raises UnsupportedTarget for chips without facts.
    """
    chip = chip_facts(target)
    arithmetic = work.flops / peak_flops(work.operands, target)
    rate: float | None = target.memory_gb_per_s
    if resident and work.bytes <= chip.last_level_bytes:
        rate = chip.last_level_gb_per_s or _l2_gb_per_s(target)
    return max(arithmetic, _seconds(work.bytes, rate)) + chip.launch_seconds


def _seconds(size: float, gb_per_s: float | None) -> float:
    return size / gb_per_s / 1e9 if gb_per_s else 0.0


def _l2_gb_per_s(target: Target) -> float | None:
    a_cycle = chip_facts(target).l2_bytes_per_cycle
    return a_cycle * target.clock_ghz if a_cycle else None


def sustained_rates(operands: tuple[str, str], target: Target) -> tuple[float, float] | None:
    """Operations a second of two types and gigabytes a second that a chip keeps up at best.

    None where none were published.
    """
    rates = target.sustained
    if rates is None:
        return None
    a, b = (rate_type(one) for one in operands)
    matrix = rates.matrix_of(a) if a == b else None
    flops = matrix.tflops * 1e12 if matrix else peak_flops(operands, target)
    return flops, rates.memory_best_gb_per_s


def sustained_least(work: Work, target: Target, resident: bool = False) -> float | None:
    """The same by the best rates that any kernel keeps up; None where none were published.

    A rate nobody published is the peak.
    """
    rates = target.sustained
    kept = sustained_rates(work.operands, target)
    if rates is None or kept is None:
        return None
    flops, memory = kept
    chip = chip_facts(target)
    rate: float | None = memory
    if resident and work.bytes <= chip.last_level_bytes:
        last_level = rates.last_level_best_gb_per_s or chip.last_level_gb_per_s
        rate = last_level or rates.l2_gb_per_s or _l2_gb_per_s(target)
    return max(work.flops / flops, _seconds(work.bytes, rate)) + chip.launch_seconds


def rate_type(dtype: str) -> str:
    """The row of sustained rates that a type belongs to."""
    row = DTYPES.get(dtype)  # xf32 is a way to multiply f32, and no type of data
    return "f8" if row and row.is_f8 else dtype


def least_seconds(problem: ConvProblem, target: Target) -> float:
    """`least` of a problem."""
    return least(work_of(problem, target), target)


def sustained_least_seconds(problem: ConvProblem, target: Target) -> float | None:
    """`sustained_least` of a problem."""
    return sustained_least(work_of(problem, target), target)
