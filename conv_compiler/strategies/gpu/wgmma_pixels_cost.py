# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels with copies to LDS take for forward passes and data gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu import stationary_weight
from conv_compiler.strategies.gpu.cost_constants import PIXEL_WARP_GROUPS, PIXEL_WAVES
from conv_compiler.strategies.gpu.pixel_shape import shape_of
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    FLOAT,
    GIGA,
    HALF,
    block_of,
    copied_seconds,
    cycle_products,
    element_bytes,
    lds_traffic,
    resident,
    written_seconds,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.gpu.cost_constants import PixelWarpGroups
    from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling
    from conv_compiler.targets import Target


def table_of(tiling: WarpGroupTiling) -> PixelWarpGroups:
    """The constants of a tiling's instruction."""
    return PIXEL_WARP_GROUPS if tiling.by_wave_groups else PIXEL_WAVES


def workgroups(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Those of one part."""
    return sum(count for _, count in shares(problem, tiling))


def shares(problem: ConvProblem, tiling: WarpGroupTiling) -> list[tuple[WarpGroupTiling, int]]:
    """Each kind of tile, as a tiling without a tail, and its workgroups of one part."""
    shape = shape_of(problem, tiling.merged_groups)
    first, *others = tiling.kinds
    head_tiles = tiling.tail.head_tiles if tiling.tail else 0
    rows = tiling.row_workgroups or head_tiles or row_tiles(shape.rows, first)
    found = [(first, rows)]
    found += [(one, row_tiles(shape.rows - rows * first.workgroup[0], one)) for one in others]
    return [
        (one, own * -(-shape.columns // one.workgroup[1]) * len(shape.taps) * shape.groups)
        for one, own in found
    ]


def row_tiles(rows: int, tiling: WarpGroupTiling) -> int:
    """Tiles that have so many rows."""
    return -(-rows // tiling.workgroup[0])


def k_tiles(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Tiles of gemm_k of the phase that has most."""
    return max(shape_of(problem, tiling.merged_groups).k_tiles(tiling.workgroup[2]))


def predict(problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int) -> float:
    """Seconds of the matrix kernel, of the kernel that adds parts where there are several, and of
    those in front of both."""
    added = sum_seconds(problem, target, split_k) if split_k > 1 else 0.0
    sources, _ = channels(problem)
    source, weight = map(math.prod, problem.operand_shapes)
    copies = (copied_seconds, written_seconds if transposes_weight(problem) else copied_seconds)
    copied = sum(
        seconds(elements, own, target, tiling.element_bytes)
        for seconds, elements, own in zip(
            copies, (source, weight), (sources, weight_line(problem)), strict=True
        )
    )
    return kernel_seconds(problem, target, tiling, split_k) + added + copied


def transposes_weight(problem: ConvProblem) -> bool:
    """Whether a kernel in front has the weight lie along gemm_k, as 8-bit types are multiplied."""
    return problem.direction == "bwd_data" and element_bytes(problem) == 1


def weight_line(problem: ConvProblem) -> int:
    """Channels of the weight that are adjacent where it is multiplied."""
    return problem.k if transposes_weight(problem) else problem.c


def kernel_seconds(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int
) -> float:
    """Seconds of the matrix kernel, its launch among them."""
    if tiling.row_workgroups:
        return stationary_weight.kernel_seconds(problem, target, tiling)
    chip, table = target.clock_ghz * GIGA, table_of(tiling)
    shape = shape_of(problem, tiling.merged_groups)
    most = most_resident(problem, target, tiling, split_k)
    parts = [-(-one // split_k) for one in shape.k_tiles(tiling.workgroup[2])]
    block, width = block_of(problem), stored_bytes(problem, split_k)

    def cycles(tiling: WarpGroupTiling, together: int, iterations: float) -> float:
        """Of so many workgroups that share a unit, from their start to their end.

        An iteration takes what LDS or the matrix unit need for all of them, and what one waits
        for: its own instructions, or a tile that was asked for some iterations before.
        """
        (m, n, k), rate = tiling.workgroup, cycle_products(target, tiling, table.cycle_products)
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
        one = overlapped(least, together * busy)
        return table.other_cycles + iterations * one + together * stored

    mean, total = sum(parts) / len(parts), 0.0
    for kind, count in shares(problem, tiling):
        rounds, rest = divmod(-(-count * split_k // target.compute_units), most)
        total += rounds * cycles(kind, most, mean) + (cycles(kind, rest, mean) if rest else 0.0)
    total = max(total, cycles(tiling.kinds[0], 1, max(parts)))
    bytes_ = sum(map(math.prod, problem.operand_shapes)) * tiling.element_bytes
    bytes_ += math.prod(problem.result_shape) * width * split_k
    memory = bytes_ / (table.memory_share * target.memory_gb_per_s * GIGA)
    # Workgroups that share a unit load while another one stores.
    apart = table.apart_share * min(total / chip, memory) / most
    return table.launch_cycles / chip + max(total / chip, memory) + apart


def most_resident(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int
) -> int:
    """Workgroups that a unit runs at a time, of which each has room for any kind of tile."""
    several = shape_of(problem, tiling.merged_groups).k_tiles(tiling.workgroup[2])
    count = -(-several[0] // split_k) if len(several) == 1 else tiling.stages
    is_narrow = stored_bytes(problem, split_k) == HALF
    return min(resident(target, one, min(count, one.stages), is_narrow) for one in tiling.kinds)


def stored_bytes(problem: ConvProblem, split_k: int) -> int:
    """Of a sum as a workgroup stores it."""
    return HALF if split_k == 1 and problem.result_type.bytes == HALF else FLOAT


def overlapped(a: float, b: float) -> float:
    """Cycles of two demands that overlap, the less the more alike they are.

    That is the fourth root of their fourth powers' sum. Times on a card are off less by it than by
    the longer demand.
    """
    return math.sqrt(math.hypot(a**2, b**2))


def sum_seconds(problem: ConvProblem, target: Target, split_k: int) -> float:
    """Seconds of the kernel that adds parts, its launch among them."""
    table = PIXEL_WARP_GROUPS
    moved = math.prod(problem.result_shape) * (split_k * FLOAT + problem.result_type.bytes)
    cycles = table.sum_launch_cycles + moved / table.sum_cycle_bytes
    return cycles / (target.clock_ghz * GIGA)
