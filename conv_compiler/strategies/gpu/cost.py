# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a tiling takes by the performance model, from what it would execute."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import KernelCounts
from conv_compiler.model.estimate import Estimate, estimate
from conv_compiler.model.facts import ChipFacts, rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.model.met_pixels import met_elements
from conv_compiler.problem.canonical import data_gradient_of
from conv_compiler.strategies.gpu.cost_constants import REGISTERS, SLACK, TIE_BREAK
from conv_compiler.strategies.gpu.data_gradient_kernels import placing_seconds
from conv_compiler.strategies.gpu.die_reads import dies_reading
from conv_compiler.strategies.gpu.grid import tiles
from conv_compiler.strategies.gpu.instruction_counts import (
    mma_counts,
    mma_of,
    mma_vgprs,
    saves_a_kernel,
    vector_counts,
)
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.lds_copies import tiling_lds_bytes
from conv_compiler.strategies.gpu.loop_order import along_gemm_k
from conv_compiler.strategies.gpu.phases_in_place import stores_phases
from conv_compiler.strategies.gpu.split_k_reduction import reduction_seconds, sums_of_tiling
from conv_compiler.strategies.gpu.tilings import item_of, vector_threads
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


class _Kernel(NamedTuple):
    """A kernel before its problem's bytes are known: counts of a wave, its grid and needs."""

    counts: KernelCounts
    workgroups: int
    waves: int
    vgprs: int
    lds_bytes: int
    dies: float | None


class _Prediction(NamedTuple):
    """Seconds of a tiling's kernels in all, the estimate of the first, and its bytes from L2."""

    seconds: float
    main: Estimate
    l2_bytes: float


def predict(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> float:
    """Modelled seconds of a problem with a tiling and a split-K factor.

    The kernels behind are included, which add parts and put phases of a data gradient in place.

    A ranking of what could be compiled; what was compiled is modelled from its code. The units'
    seconds are counted again in part (`cost_constants.RankSlack`).
    """
    return _prediction(problem, target, tiling, split_k).seconds


def l2_bytes(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> float:
    """Bytes that the first kernel reads from L2."""
    return _prediction(problem, target, tiling, split_k).l2_bytes


def is_behind_memory(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether memory takes longer than the first kernel's units do, and L2 about as long."""
    main = _prediction(problem, target, tiling, split_k).main
    memory, l2 = main.pipes["memory"], main.pipes.get("L2", 0.0)
    is_bound = memory >= max(main.unit_seconds, *main.pipes.values())
    return is_bound and l2 >= TIE_BREAK.busy_l2_share * memory


@lru_cache(maxsize=4096)  # a tiling is met again where its splits are ranked
def _prediction(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> _Prediction:
    chip, size = _chip(problem, target), operand_bytes(problem, target)
    weights = math.prod(problem.weight_shape)
    kernel = (
        _matrix_kernel(problem, target, tiling, split_k)
        if tiling.mma
        else _vector_kernel(problem, target, tiling, split_k)
    )
    direct = bool(tiling.mma) and saves_a_kernel(problem, target, tiling, split_k)
    partials_bytes = split_k * weights * tiling.merged_groups * DWORD
    places = stores_phases(problem, target, tiling, split_k)
    of = data_gradient_of(problem) if places else None
    stored = math.prod(of.result_shape) if of else weights
    launch = Launch(
        workgroups=kernel.workgroups,
        waves=kernel.waves,
        vgprs=kernel.vgprs,
        lds_bytes=kernel.lds_bytes,
        read_bytes=round((met_elements(problem) + math.prod(problem.output_shape)) * size),
        written_bytes=stored * problem.result_type.bytes if direct else partials_bytes,
        dies=kernel.dies,
    )
    main = estimate(kernel.counts, launch, target, chip)
    sums = sums_of_tiling(problem, target, tiling, split_k)
    behind = 0.0 if direct else reduction_seconds(problem, target, split_k, sums)
    if not places:
        behind += placing_seconds(problem, target)
    slack = SLACK.interleaved_share if kernel.counts.interleaved else SLACK.serial_share
    return _Prediction(
        seconds=main.seconds + slack * main.unit_seconds + behind,
        main=main,
        l2_bytes=kernel.counts.wave.line_bytes * kernel.waves * kernel.workgroups,
    )


@lru_cache(maxsize=64)
def _chip(problem: ConvProblem, target: Target) -> ChipFacts:
    """A chip at the boost clock, with an L2 by its measured rate where nobody published its peak.

    That counts where an operand lies along gemm_k: without it small tiles, which read more from
    L2, tie with larger ones. Weight gradients chosen by it take 1.2 times as long at the boost
    clock.
    """
    chip, rates = rank_facts(target), target.sustained
    is_counted = max(along_gemm_k(problem, target)) > 1
    if chip.l2_bytes_per_cycle or rates is None or not rates.l2_gb_per_s or not is_counted:
        return chip
    peak = rates.l2_gb_per_s / SLACK.measured_l2_share
    return replace(chip, l2_bytes_per_cycle=peak / target.clock_ghz)


def _matrix_kernel(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> _Kernel:
    mma, chip = mma_of(target, tiling), rank_facts(target)
    return _Kernel(
        counts=mma_counts(problem, target, tiling, mma, split_k),
        workgroups=tiles(problem, tiling) * split_k,
        waves=math.prod(tiling.subgroups),
        vgprs=mma_vgprs(problem, target, tiling, mma),
        lds_bytes=tiling_lds_bytes(mma, tiling, item_of(problem, target)),
        dies=dies_reading(problem, tiling, split_k, chip.l2_parts),
    )


def _vector_kernel(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> _Kernel:
    threads_m, threads_n, groups = vector_threads(problem, tiling.piece)
    return _Kernel(
        counts=vector_counts(problem, target, tiling, split_k),
        workgroups=-(-tiles(problem, tiling) // groups) * split_k,
        waves=-(-threads_m * threads_n * groups // target.subgroup_size),
        vgprs=REGISTERS.other_registers + 2 * math.prod(tiling.piece),
        lds_bytes=0,
        dies=None,
    )
