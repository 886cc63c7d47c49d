# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wave groups whose workgroups keep the weight in LDS: tiles, and how long their kernels take.

That is for sources that are read as they lie, so that each row of the GEMM is a source pixel. A
workgroup goes through several tiles of rows (`passes/wgmma_parts/stationary_kernel.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import PIXEL_WARP_GROUPS, STATIONARY, WARP_GROUPS
from conv_compiler.strategies.gpu.pixel_shape import Shape, shape_of
from conv_compiler.strategies.gpu.warp_group_kind import MOST_SUMS, tiling_for
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    FLOAT,
    GIGA,
    HALF,
    LINE_BYTES,
    NARROW_PAD,
    ROW_PAD,
    cycle_products,
    held,
    lds_traffic,
)
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Rows of each 64 that a wave stores, and its threads.
OWN_ROWS, WAVE = 16, 32


def tilings(problem: ConvProblem, target: Target, dtype: str) -> Iterator[WarpGroupTiling]:
    """The tiles whose weight LDS holds beside enough stages of the source.

    As many workgroups share the rows as the chip runs at a time, so none waits for another one.
    """
    shape = shape_of(problem)
    if not shape.is_plain or len(shape.taps) != 1:
        return
    _, results = channels(problem)
    for tile, groups in STATIONARY.tried_tiles:
        m, n, _ = tile
        if n - 64 >= results:
            continue
        one = tiling_for(True, dtype, (tile, groups, STATIONARY.most_stages), 1)
        if one.thread_sums > MOST_SUMS:
            continue
        resident, stages = _stages(problem, target, one)
        if stages <= STATIONARY.stages_behind_tiles:
            continue
        slots = target.compute_units * resident
        shares = max(1, slots // (-(-shape.columns // n) * shape.groups))
        yield replace(one, stages=stages, row_workgroups=min(shares, -(-shape.rows // m)))


def _stages(problem: ConvProblem, target: Target, tiling: WarpGroupTiling) -> tuple[int, int]:
    """How many workgroups a unit runs at a time, and the stages that each has room for."""
    for resident in range(STATIONARY.most_unit_workgroups, 0, -1):
        for stages in range(STATIONARY.most_stages, 0, -1):
            lds = lds_bytes(problem, replace(tiling, stages=stages))
            enough = resident == 1 or stages >= STATIONARY.least_stages
            if lds <= target.lds_bytes and enough and _held(target, tiling, lds) >= resident:
                return resident, stages
    return 1, 0


def _held(target: Target, tiling: WarpGroupTiling, lds: int) -> int:
    registers = tiling.thread_sums + WARP_GROUPS.other_registers
    return held(target, tiling.threads, registers, lds)


def lds_bytes(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """LDS of a workgroup: stages of the source, the weight, and the sums of its waves."""
    (m, n, k), shape = tiling.workgroup, shape_of(problem)
    lines = tiling.stages * m + shape.k_tiles(k)[0] * n
    columns = n // tiling.warp_groups[1]
    narrows = rounds_in_pairs(problem, shape)
    row = columns * HALF + NARROW_PAD * FLOAT if narrows else (columns + ROW_PAD) * FLOAT
    return lines * LINE_BYTES + tiling.threads // WAVE * OWN_ROWS * row


def rounds_in_pairs(problem: ConvProblem, shape: Shape) -> bool:
    """Whether sums are rounded to 16 bits, and no more, on their way to LDS."""
    return problem.result_type.bytes == HALF and not problem.fused and shape.columns % 2 == 0


def kernel_seconds(problem: ConvProblem, target: Target, tiling: WarpGroupTiling) -> float:
    """Seconds of the kernel, its launch among them.

    A tile of rows takes what one workgroup does in a row, or its copies, or what LDS and the matrix
    unit need for all of a unit. All tensors come by way of the last cache, the source once for each
    tile of columns.
    """
    table, shape, chip = STATIONARY, shape_of(problem), target.clock_ghz * GIGA
    (m, n, k), size = tiling.workgroup, tiling.element_bytes
    steps, columns = shape.k_tiles(k)[0], -(-shape.columns // n) * shape.groups
    together = -(-tiling.row_workgroups * columns // target.compute_units)
    rate = cycle_products(target, tiling, PIXEL_WARP_GROUPS.cycle_products)
    traffic = lds_traffic(tiling) - n * k * size  # the weight is not copied each time
    busy = max(traffic / table.lds_cycle_bytes, m * n * k / rate)
    stored = m * n * problem.result_type.bytes / table.store_cycle_bytes
    ahead = max(1, tiling.stages - table.stages_behind_tiles)
    tile = max(
        steps * max(busy, table.plain_iteration_cycles) + stored,
        steps * table.copy_latency_cycles / ahead,
        together * (steps * busy + stored),
    )
    weight = steps * n * LINE_BYTES
    row_tiles = -(-shape.rows // m)
    tiles = -(-row_tiles // tiling.row_workgroups)
    unit = table.start_cycles + together * weight / table.weight_cycle_bytes + tiles * tile
    source = shape.rows * shape.depth * shape.groups * size
    result = math.prod(problem.result_shape) * problem.result_type.bytes
    read = source * -(-shape.columns // n) + tiling.row_workgroups * columns * weight
    memory = max(
        (source + result) / (table.memory_share * target.memory_gb_per_s * GIGA),
        (read + result) / (table.last_level_cycle_bytes * chip),
    )
    apart = table.apart_share * min(unit / chip, memory) / together
    return max(unit / chip, memory) + apart
