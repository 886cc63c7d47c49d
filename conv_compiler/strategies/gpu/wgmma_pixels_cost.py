# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels with copies to LDS take for forward passes and data gradients."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.slides import Slide, slides, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import PIXEL_WARP_GROUPS, PIXEL_WAVES
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    FLOAT,
    GIGA,
    HALF,
    block_of,
    copied_seconds,
    cycle_products,
    lds_traffic,
    piece_of,
    resident,
    whole_channels,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.gpu.cost_constants import PixelWarpGroups
    from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling
    from conv_compiler.targets import Target


def table_of(tiling: WarpGroupTiling) -> PixelWarpGroups:
    """The constants of a tiling's instruction."""
    return PIXEL_WARP_GROUPS if tiling.by_wave_groups else PIXEL_WAVES


class Shape(NamedTuple):
    """A problem as its kernel sees it: rows of a phase, taps of each phase, channels that a tap
    sums up, columns, groups, and whether the source is read as it lies, once."""

    rows: int
    taps: tuple[int, ...]
    depth: int
    columns: int
    groups: int
    is_plain: bool

    def k_tiles(self, k: int) -> tuple[int, ...]:
        """Tiles of gemm_k of each phase."""
        return tuple(-(-taps * self.depth // k) for taps in self.taps)


@lru_cache(maxsize=4096)
def shape_of(problem: ConvProblem, merged: int = 1) -> Shape:
    """The shape of a forward pass or data gradient."""
    axes = slides(spaced(problem), problem.direction)
    sources, results = channels(problem)
    taps = itertools.product(*([len(reads) for reads in axis.window] for axis in axes))
    return Shape(
        rows=problem.n * math.prod(axis.units for axis in axes),
        taps=tuple(map(math.prod, taps)),
        depth=whole_channels(sources * merged, piece_of(problem)),
        columns=results * merged,
        groups=problem.g // merged,
        is_plain=all(map(_is_plain, axes)),
    )


def _is_plain(axis: Slide) -> bool:
    return axis.phases == axis.step == len(axis.window[0]) == 1 and axis.size == axis.outs


def workgroups(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Those of one part."""
    (m, n, _), shape = tiling.workgroup, shape_of(problem, tiling.merged_groups)
    tiles = -(-shape.rows // m) * -(-shape.columns // n)
    return tiles * len(shape.taps) * shape.groups


def k_tiles(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Tiles of gemm_k of the phase that has most."""
    return max(shape_of(problem, tiling.merged_groups).k_tiles(tiling.workgroup[2]))


def predict(problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int) -> float:
    """Seconds of the matrix kernel, of the kernel that adds parts where there are several, and of
    those that round channels up."""
    added = sum_seconds(problem, target, split_k) if split_k > 1 else 0.0
    sources, _ = channels(problem)
    shapes = problem.operand_shapes
    copied = sum(
        copied_seconds(math.prod(shape), own, target, tiling.element_bytes)
        for shape, own in zip(shapes, (sources, problem.c), strict=True)
        if tiling.merged_groups == 1
    )
    return kernel_seconds(problem, target, tiling, split_k) + added + copied


def kernel_seconds(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int
) -> float:
    """Seconds of the matrix kernel, its launch among them."""
    chip, table = target.clock_ghz * GIGA, table_of(tiling)
    shape = shape_of(problem, tiling.merged_groups)
    (m, n, k), several = tiling.workgroup, shape.k_tiles(tiling.workgroup[2])
    count = -(-several[0] // split_k) if len(several) == 1 else tiling.stages
    is_narrow = split_k == 1 and problem.result_type.bytes == HALF
    most = resident(target, tiling, min(count, tiling.stages), is_narrow)
    grid = workgroups(problem, tiling) * split_k
    rounds, rest = divmod(-(-grid // target.compute_units), most)
    parts = [-(-one // split_k) for one in several]
    block = block_of(problem)
    width = HALF if is_narrow else FLOAT

    def cycles(together: int, iterations: float) -> float:
        """Of so many workgroups that share a unit, from their start to their end.

        An iteration takes what LDS or the matrix unit need for all of them, or what one waits for:
        its own instructions, or a tile that was asked for some iterations before.
        """
        rate = cycle_products(target, tiling, table.cycle_products)
        busy = max(lds_traffic(tiling) / table.lds_cycle_bytes, m * n * k / rate)
        least = table.plain_iteration_cycles
        if not shape.is_plain:
            busy, least = busy * table.window_times, table.window_iteration_cycles
        if shape.depth % block:
            busy, least = busy * table.flat_times, least * table.flat_times
        if iterations > tiling.stages:
            ahead = tiling.stages - table.stages_behind_tiles
            least = max(least, table.copy_latency_cycles / ahead)
        stored = m * n * width / table.store_cycle_bytes
        return table.other_cycles + iterations * max(least, together * busy) + together * stored

    mean = sum(parts) / len(parts)
    total = rounds * cycles(most, mean) + (cycles(rest, mean) if rest else 0.0)
    total = max(total, cycles(1, max(parts)))
    bytes_ = sum(map(math.prod, problem.operand_shapes)) * tiling.element_bytes
    bytes_ += math.prod(problem.result_shape) * width * split_k
    memory = bytes_ / (table.memory_share * target.memory_gb_per_s * GIGA)
    # Workgroups that share a unit load while another one stores.
    apart = table.apart_share * min(total / chip, memory) / most
    return table.launch_cycles / chip + max(total / chip, memory) + apart


def sum_seconds(problem: ConvProblem, target: Target, split_k: int) -> float:
    """Seconds of the kernel that adds parts, its launch among them."""
    table = PIXEL_WARP_GROUPS
    moved = math.prod(problem.result_shape) * (split_k * FLOAT + problem.result_type.bytes)
    cycles = table.sum_launch_cycles + moved / table.sum_cycle_bytes
    return cycles / (target.clock_ghz * GIGA)
