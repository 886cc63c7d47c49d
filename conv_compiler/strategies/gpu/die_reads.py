# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many dies of a chip read the operands, by the order of the grid (`implicit_gemm.mlir`, 1b).

Workgroups go to the dies in turn. Where the L2 is divided, the part is the grid's fastest axis.
Behind it come columns, taps (or channels) with workgroups of their own, and rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.met_pixels import met_elements
from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.strategies.gpu.grid import tile_grid
from conv_compiler.strategies.gpu.tilings import merged

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling


class _Readers(NamedTuple):
    """Workgroups along an axis that read the same elements: how many, and how far apart."""

    workgroups: int
    apart: int


def dies_reading(problem: ConvProblem, tiling: GpuTiling, split_k: int, dies: int) -> float:
    """How many of a chip's `dies` read a byte of the operands, on average.

    Parts of a weight gradient have pixels of their own, which all of their tiles read. In `fwd` and
    `bwd_data` tiles have pixels of their own.
    """
    of_parts = dies // math.gcd(split_k, dies)
    if of_parts == 1 or not isinstance(problem, EquivalentWgrad):
        return of_parts
    grid, whole = tile_grid(problem, tiling), merged(problem, tiling.merged_groups)
    m, n, _ = tiling.workgroup
    outer = split_k * grid.columns
    row = outer * grid.outer
    of_a = [_Readers(grid.columns, split_k), _Readers(grid.outer, outer)]
    of_b = [_Readers(grid.rows, row)]
    # A pixel is in the windows of so many taps.
    taps = min(math.prod(problem.filter), math.prod(problem.out_image))
    if tiling.taps_in_rows:
        of_a.append(_Readers(min(taps, grid.rows), row * max(1, whole.k // m)))
    elif tiling.taps_outside:
        of_b.append(_Readers(min(taps, grid.outer), outer))
    elif not tiling.channels_outside:
        of_b.append(_Readers(min(taps, grid.columns), split_k * max(1, whole.c // n)))
    a, b = math.prod(problem.output_shape), met_elements(problem)
    return (a * _dies(of_a, dies) + b * _dies(of_b, dies)) / (a + b)


def _dies(readers: list[_Readers], dies: int) -> int:
    """Dies that such workgroups go to."""
    several = [one for one in readers if one.workgroups > 1]
    workgroups = math.prod(one.workgroups for one in several)
    return min(workgroups, dies // math.gcd(dies, *(one.apart for one in several)))
