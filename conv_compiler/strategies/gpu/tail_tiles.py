# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Smaller tiles for the rows that whole rounds of workgroups leave, in the same kernel.

A last round that is filled in part costs as much as any other. Smaller tiles make it shorter, and
give work to more units (`passes/wgmma_parts/tail_kernel.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.pixel_shape import shape_of
from conv_compiler.strategies.gpu.warp_group_kind import has_kernel
from conv_compiler.strategies.gpu.wgmma_pixels_cost import most_resident, row_tiles, table_of
from conv_compiler.strategies.warp_group_tiling import TailTile, WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def head_tiles(problem: ConvProblem, target: Target, tiling: WarpGroupTiling) -> int:
    """Tiles of rows in whole rounds of workgroups; 0 where there are none, or no other rows.

    That is for one group and one phase, whose rows all workgroups count alike.
    """
    shape = shape_of(problem)
    if tiling.row_workgroups or (problem.g, len(shape.taps)) != (1, 1):
        return 0
    tiles, across = row_tiles(shape.rows, tiling), -(-shape.columns // tiling.workgroup[1])
    slots = target.compute_units * most_resident(problem, target, tiling, 1)
    found = tiles * across // slots * slots // across
    return found if found < tiles else 0


def tilings(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling
) -> Iterator[WarpGroupTiling]:
    """A tiling with each tile of the table behind it that is smaller and not too wide."""
    table, (m, n, _) = table_of(tiling), tiling.workgroup
    if not table.tail_tiles or not (head := head_tiles(problem, target, tiling)):
        return
    for tile, groups in table.tail_tiles:
        if m % tile[0] or math.prod(tile) >= m * n or tile[1] - 64 >= shape_of(problem).columns:
            continue
        tail = TailTile(head_tiles=head, tile=tile, warp_groups=groups, stages=1)
        one = replace(tiling, tail=tail)
        if one.kinds[1].threads == tiling.threads and (found := _staged(problem, target, one)):
            yield found


def _staged(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling
) -> WarpGroupTiling | None:
    """The same with as many stages of the tail as LDS holds, for as many workgroups of a unit as
    the larger tiles have; None where these are too few."""
    assert tiling.tail
    large, small = tiling.kinds
    (m, n, k), least = small.workgroup, table_of(tiling).stages_behind_tiles
    wanted = most_resident(problem, target, large, 1)
    for stages in range(target.lds_bytes // ((m + n) * k * small.element_bytes), least, -1):
        found = replace(tiling, tail=replace(tiling.tail, stages=stages))
        is_held = has_kernel(target, found.kinds[1])
        if is_held and most_resident(problem, target, found, 1) == wanted:
            return found
    return None
