"""How long a tiling takes by the performance model, from what it would execute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.strategies.gpu.instruction_counts import (
    OTHER_VGPRS,
    mma_counts,
    mma_of,
    mma_vgprs,
    saves_a_kernel,
    vector_counts,
)
from conv_compiler.strategies.gpu.lds_copies import DWORD, lds_bytes
from conv_compiler.strategies.gpu.split_k_reduction import reduction_seconds, sums_of_tiling
from conv_compiler.strategies.gpu.tilings import tiles, vector_threads
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target

# Share of its units' time by which a kernel is ranked lower: among those that memory binds, the one
# whose units wait most for it.
SLACK, MIXED_SLACK = 0.25, 0.1


def predict(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> float:
    """Modelled seconds of a problem with a tiling and a split: its kernel and the reduction.

    A ranking of what could be compiled; what was compiled is modelled from its code.
    """
    size = operand_bytes(problem, target)
    weights = math.prod(problem.weight_shape)
    read = (math.prod(problem.input_shape) + math.prod(problem.output_shape)) * size
    if tiling.mma:
        mma = mma_of(target, tiling)
        counts = mma_counts(problem, target, tiling, mma, split_k)
        workgroups, waves = tiles(problem, tiling) * split_k, math.prod(tiling.subgroups)
        vgprs = mma_vgprs(problem, target, tiling, mma)
        lds = lds_bytes(mma, tiling.workgroup, size)
    else:
        counts = vector_counts(problem, target, tiling, split_k)
        threads_m, threads_n, groups = vector_threads(problem, tiling.piece)
        waves = -(-threads_m * threads_n * groups // target.subgroup_size)
        workgroups = -(-tiles(problem, tiling) // groups) * split_k
        vgprs, lds = OTHER_VGPRS + 2 * math.prod(tiling.piece), 0
    chip = rank_facts(target)
    direct = bool(tiling.mma) and saves_a_kernel(problem, target, tiling, split_k)
    sums = split_k * weights * tiling.merged_groups * DWORD
    launch = Launch(
        workgroups=workgroups,
        waves=waves,
        vgprs=vgprs,
        lds_bytes=lds,
        read_bytes=read,
        written_bytes=weights * problem.result_type.bytes if direct else sums,
        # Workgroups go to the dies in turn, parts first (`tile_to_workgroups`): a die reads the
        # pixels of its own parts.
        dies=chip.l2_parts // math.gcd(split_k, chip.l2_parts) if tiling.mma else None,
    )
    main = estimate(counts, launch, target, chip)
    at_once = sums_of_tiling(problem, target, tiling, split_k)
    behind = 0.0 if direct else reduction_seconds(problem, target, split_k, at_once)
    slack = MIXED_SLACK if counts.mixed else SLACK
    return main.seconds + slack * main.unit_seconds + behind
