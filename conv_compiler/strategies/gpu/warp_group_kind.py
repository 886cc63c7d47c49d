# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What both strategies of wave groups share: their order, whole parts, and the schedule of kernels
that a pass has written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS
from conv_compiler.strategies.gpu.wgmma_gemm_cost import SUM_THREADS
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy, WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.targets import Target

WARP_GROUP = 128  # threads
# Operands and parts are counted in 32 bits, workgroups along y and z in 16.
MOST_ELEMENTS, MOST_WORKGROUPS = 2**31, 2**16 - 1
# Of the kernel that rounds channels up to whole pieces (`passes/wgmma_parts/padded_channels.py`).
PADDED_ROLE = "padded-channels"
PAD_THREADS = 256


def few_channels() -> str:
    """The rule for groups of few channels."""
    return f"its groups have {WARP_GROUPS.least_channels} channels or more"


def few_elements() -> str:
    """The rule for large tensors."""
    return f"its tensors, channels in whole pieces, have fewer than {MOST_ELEMENTS} elements"


def tiling_of(one: Strategy) -> WarpGroupTiling:
    """The numbers of a strategy of wave groups."""
    assert isinstance(one.tiling, WarpGroupTiling)
    return one.tiling


def whole_parts(tiles: int, split_k: int) -> int:
    """The parts, of so many, that have products where each is whole `tiles` of gemm_k."""
    return -(-tiles // -(-tiles // split_k))


def ranked(name: str, found: Iterable[tuple[float, int, WarpGroupTiling]]) -> tuple[Strategy, ...]:
    """Each tiling with its best split-K factor, fastest first, of (seconds, parts, tiling)."""
    best: dict[WarpGroupTiling, Strategy] = {}
    for _, parts, tiling in sorted(found, key=lambda entry: entry[0]):
        best.setdefault(tiling, Strategy(name=name, tiling=tiling, split_k=parts))
    return tuple(best.values())[: WARP_GROUPS.most_tilings]


def schedule(target: Target, one: Strategy, *, pads: bool) -> Schedule:
    """The pipeline of the written kernels; with `pads` there are some that round channels up."""

    def info(threads: int) -> CompilationInfo:
        return CompilationInfo(
            lowering_config="#iree_gpu.lowering_config<{}>",
            pipeline=read_pipeline("gpu_written").steps,
            workgroup_size=(threads, 1, 1),
            subgroup_size=target.subgroup_size,
        )

    roles = {"contraction": info(math.prod(tiling_of(one).warp_groups) * WARP_GROUP)}
    if one.split_k > 1:
        roles["reduction"] = info(SUM_THREADS)
    if pads:
        roles[PADDED_ROLE] = info(PAD_THREADS)
    return Schedule(roles=roles)
