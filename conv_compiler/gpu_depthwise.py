"""The depthwise strategy: tilings that fit, how long each would take, and what rides on the ops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.gpu_pipeline import lowering_threads
from conv_compiler.gpu_reduction import reduction_info
from conv_compiler.schedule import CompilationInfo, Schedule
from conv_compiler.strategy import DepthwiseTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.targets import Target


def candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    return ()


def auto_split(problem: ConvProblem, target: Target, strategy: Strategy) -> int:
    return 1


def cost(problem: ConvProblem, target: Target, strategy: Strategy) -> float:
    return 0.0


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a kernel of vectors."""
    from conv_compiler.passes.depthwise import Depthwise

    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    return (
        Depthwise(
            vector=tiling.vector,
            columns=tiling.columns,
            rows=tiling.rows,
            unroll=tiling.unroll,
            lanes=tiling.lanes,
            threads=tiling.threads,
            split_k=strategy.split_k,
        ),
    )


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Pipeline of a kernel of vectors."""
    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=lowering_threads(target.backend),
        workgroup_size=(tiling.threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    roles = {"contraction": info}
    if strategy.split_k > 1:
        roles["reduction"] = reduction_info(problem, target, strategy.split_k)
    return Schedule(roles=roles)
