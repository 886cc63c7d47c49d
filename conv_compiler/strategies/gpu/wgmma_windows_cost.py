# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels take that keep windows in LDS: copies, products and stores of a unit's
workgroups, or the memory's traffic."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.slides import spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.problem.window_tiles import PATCH, WindowTile
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS, WINDOWS
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    FLOAT,
    GIGA,
    HALF,
    NARROW_PAD,
    ROW_PAD,
    STEP_BYTES,
    held,
    last_level_bytes,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.warp_group_tiling import WindowTiling
    from conv_compiler.targets import Target


@lru_cache(maxsize=4096)
def tile_of(problem: ConvProblem, tiling: WindowTiling) -> WindowTile:
    """The tile of a workgroup of a forward pass or data gradient."""
    sources, results = channels(problem)
    return WindowTile.of(
        spaced(problem),
        problem.direction,
        rows=tiling.rows,
        columns=tiling.columns,
        images=tiling.images,
        patch_rows=tiling.patch_rows,
        wave_groups=tiling.wave_groups,
        sources=sources,
        results=results,
        merged_groups=tiling.merged_groups,
    )


def tiles(problem: ConvProblem, tiling: WindowTiling) -> int:
    """Tiles of merged groups."""
    return math.prod(tile_of(problem, tiling).tiles(problem.n))


def workgroups(problem: ConvProblem, tiling: WindowTiling) -> int:
    """Of the kernel."""
    return tiling.workgroups * problem.g // tiling.merged_groups


def lds_bytes(problem: ConvProblem, tiling: WindowTiling) -> int:
    """LDS of a workgroup: its weights, one window or two, and the sums of 64 rows of each wave
    group, or pairs of them that are rounded to 16 bits."""
    tile = tile_of(problem, tiling)
    is_narrow = problem.result_type.bytes == HALF and problem.elementwise == ""
    row = tile.columns * HALF + NARROW_PAD * FLOAT
    if not is_narrow:
        row = (tile.columns + ROW_PAD) * FLOAT
    stages = 2 if tiling.workgroups < tiles(problem, tiling) else 1
    return tile.weight_bytes + stages * tile.window_bytes + tiling.wave_groups * PATCH * row


def resident(problem: ConvProblem, target: Target, tiling: WindowTiling) -> int:
    """Workgroups that a unit runs at a time, by LDS, registers and threads."""
    tile = tile_of(problem, tiling)
    registers = tile.sums + WINDOWS.other_registers
    return held(target, tile.threads, registers, lds_bytes(problem, tiling))


def predict(problem: ConvProblem, target: Target, tiling: WindowTiling) -> float:
    """Seconds of the kernel, its launch among them.

    A workgroup's tile takes what LDS, the matrix unit and the stores need for all workgroups of its
    unit, or what one of them waits for. Of this work and the memory's traffic a part of the
    shorter one is not hidden behind the longer one.
    """
    chip, table = target.clock_ghz * GIGA, WINDOWS
    tile = tile_of(problem, tiling)
    instructions = math.prod(tile.patches) * tile.pairs * tile.merged_groups
    lds = (PATCH + tile.results) * STEP_BYTES / table.lds_cycle_bytes
    products = PATCH * tile.results * (STEP_BYTES // HALF) / table.cycle_products
    busy = (
        tile.lines * tile.block * HALF / table.copy_cycle_bytes
        + instructions * max(lds, products)
        + tile.rows * tile.columns * problem.result_type.bytes / table.store_cycle_bytes
    )
    most = resident(problem, target, tiling)
    grid = -(-workgroups(problem, tiling) // target.compute_units)
    own = -(-tiles(problem, tiling) // tiling.workgroups)
    alone = table.tile_cycles + instructions / tiling.wave_groups * table.instruction_cycles
    rounds, rest = divmod(grid, most)
    cycles = rounds * (table.other_cycles + own * max(most * busy, alone))
    cycles += (table.other_cycles + own * max(rest * busy, alone)) if rest else 0.0
    shorter, longer = sorted((cycles / chip, _memory_seconds(problem, target)))
    return table.launch_cycles / chip + longer + table.apart_share * shorter


def _memory_seconds(problem: ConvProblem, target: Target) -> float:
    """Seconds of the traffic of all tensors, which stay in the last cache where they are small."""
    bytes_ = sum(map(math.prod, problem.operand_shapes)) * HALF
    bytes_ += math.prod(problem.result_shape) * problem.result_type.bytes
    seconds = bytes_ / (WINDOWS.memory_share * target.memory_gb_per_s * GIGA)
    is_cached = bytes_ < WARP_GROUPS.cached_share * last_level_bytes(target)
    return seconds / WINDOWS.cached_times if is_cached else seconds
