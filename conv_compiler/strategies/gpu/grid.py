# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of a tiling: its workgroups along rows, taps and columns of the GEMM."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.tilings import merged

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling


class Grid(NamedTuple):
    """A group's workgroups of one part: `outer` are the taps, or channels, that have their own."""

    rows: int
    outer: int
    columns: int


def tile_grid(problem: ConvProblem, tiling: GpuTiling) -> Grid:
    """The workgroups of a group, or of merged groups, and one part."""
    m, n, _ = tiling.workgroup
    taps, problem = math.prod(problem.filter), merged(problem, tiling.merged_groups)
    rows = -(-problem.gemm_m // m)
    if tiling.taps_in_rows:
        return Grid(-(-taps * problem.k // m), 1, -(-problem.c // n))
    if tiling.taps_outside:
        return Grid(rows, taps, -(-problem.c // n))
    if tiling.channels_outside:
        return Grid(rows, problem.c, -(-taps // n))
    return Grid(rows, 1, -(-problem.gemm_n // n))


def tiles(problem: ConvProblem, tiling: GpuTiling) -> int:
    """Workgroups of one part."""
    return math.prod(tile_grid(problem, tiling)) * (problem.g // tiling.merged_groups)
