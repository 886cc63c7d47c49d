# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `vector_gemm`: which tiles of vector code fit, and its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.gemm_kind import GemmKind
from conv_compiler.strategies.gpu.lds_banks import LDS_ROW_PADDING
from conv_compiler.strategies.gpu.payload_passes import passes
from conv_compiler.strategies.gpu.ranking import rank_tilings
from conv_compiler.strategies.gpu.split_k_reduction import roles_of
from conv_compiler.strategies.gpu.tilings import (
    vector_threads,
    vector_tilings,
)
from conv_compiler.strategies.kind import GPU_BACKENDS, Lowering
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
    pipeline = read_pipeline("gpu_vector", conditions, lds_padding_bits=8 * LDS_ROW_PADDING)
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


@dataclass(frozen=True, kw_only=True)
class VectorGemm(GemmKind):
    """A GEMM on vector units, for types and shapes that no matrix instruction serves."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The two fastest tilings."""
        return vector_candidates(wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """im2col, GEMM and split-K; then `mlir/vector_gemm.mlir`."""
        return Lowering(
            passes=passes(wgrad, target, one), schedule=vector_schedule(wgrad, target, one)
        )


VECTOR_GEMM = VectorGemm(
    name="vector_gemm",
    description="sums in registers, vector fma; where no matrix instruction fits",
    tile="m x n x gemm_k of a workgroup: the pieces of its threads, gemm_k 4",
    backends=GPU_BACKENDS,
)
