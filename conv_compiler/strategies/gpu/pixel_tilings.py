# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of forward passes and data gradients by wave groups or waves that are worth trying."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu import stationary_weight, tail_tiles
from conv_compiler.strategies.gpu.cost_constants import PIXEL_WARP_GROUPS, PixelWarpGroups
from conv_compiler.strategies.gpu.warp_group_kind import has_kernel, tiling_for
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    STEP_BYTES,
    block_of,
    element_bytes,
    piece_of,
)
from conv_compiler.strategies.gpu.wgmma_pixels_cost import transposes_weight
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def merges(problem: ConvProblem) -> list[int]:
    """How many groups may share tiles: one, and as many adjacent ones as have a block of source
    channels, which each is some whole instructions of."""
    row, (sources, results) = problem.layout_row.grouped, channels(problem)
    block, piece = block_of(problem), piece_of(problem)
    several, step = block // sources, STEP_BYTES // element_bytes(problem)
    fits = (
        row.input == "N*GC"
        and (row.weight == "GK*C" or transposes_weight(problem))
        and sources % step == results % piece == problem.c % piece == 0
        and several * sources == block
        and several * results <= block
        and problem.g % several == 0
    )
    return [1, several] if fits and several > 1 else [1]


def tilings(
    problem: ConvProblem, target: Target, table: PixelWarpGroups = PIXEL_WARP_GROUPS
) -> Iterator[WarpGroupTiling]:
    """The tiles of the table that LDS holds and that are no more than one block larger than the
    problem, and each with the tiles of a tail."""
    (dtype,), (_, results) = set(problem.operand_dtypes), channels(problem)
    for merged in merges(problem):
        for tried in table.tried_tiles:
            (_, n, _), executors, _ = tried
            if n - 64 >= results * merged:
                continue
            if merged > 1 and (executors[1] > 1 or n < results * merged):
                continue
            tiling = tiling_for(table.by_wave_groups, dtype, tried, merged)
            if has_kernel(target, tiling):
                yield tiling
                yield from tail_tiles.tilings(problem, target, tiling)
    if table.by_wave_groups:
        yield from stationary_weight.tilings(problem, target, dtype)
