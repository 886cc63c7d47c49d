"""The strategy `vector_gemm`: which tiles of vector code fit, and its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.ranking import rank_tilings
from conv_compiler.strategies.gpu.split_k_reduction import roles_of
from conv_compiler.strategies.gpu.tilings import (
    vector_threads,
    vector_tilings,
)
from conv_compiler.strategies.own_schedule import LOOP_CHECK, is_checked
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def vector_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Vector tilings, fastest first; those with the workgroup's `tile`, where one is given."""
    if problem.data_type.cpu_only:
        return ()
    fitting = [tiling for tiling in vector_tilings(problem) if tile in ((), tiling.workgroup)]
    return rank_tilings("vector_gemm", problem, target, fitting, split_k)[:2]


def vector_schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Script and pipeline of a GEMM on vector units."""
    from conv_compiler.strategies.transform_library import library

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, k = tiling.workgroup
    piece_m, piece_n = tiling.piece
    threads_m, threads_n, groups = vector_threads(problem, tiling.piece)
    waves = -(-threads_m * threads_n * groups // target.subgroup_size)

    checked = is_checked(problem, tiling, strategy)
    conditions = {target.backend: True, "lds-rows": True, "own-script": checked}
    pipeline = read_pipeline("gpu_vector", conditions)
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline.steps,
        workgroup_size=(waves * target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    text, replaced = library(
        ("common", "vector_gemm"),
        pipeline.entries,
        {
            "entry_parallel": lambda s: s.include("parallel_tile", groups, m, n, piece_m, piece_n),
            "entry_loop": lambda s: s.include("thread_loop", k),
        },
        strategy.script,
        fixed=(LOOP_CHECK,) * checked,
    )
    return Schedule(
        roles=roles_of(problem, target, strategy, info), library=text, replaced=replaced
    )
