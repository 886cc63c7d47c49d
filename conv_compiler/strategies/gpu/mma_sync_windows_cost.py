# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels of weight gradients take that keep windows in LDS: what a unit's workgroups read
from LDS and multiply, or the memory's traffic; and the sum of the parts."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.gradient_tiles import PIECE, PIECE_BYTES, STEP, GradientTile, Slid
from conv_compiler.strategies.gpu.cost_constants import GRADIENT_WINDOWS, WARP_GROUPS
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    GIGA,
    HALF,
    held,
    last_level_bytes,
    sum_seconds,
    wave_products,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.warp_group_tiling import GradientTiling
    from conv_compiler.targets import Target

# Bytes that an instruction reads of 16 pixels of a piece, and products of one of 16 rows.
PIECE_READ, PRODUCTS = STEP * PIECE_BYTES, STEP * STEP * PIECE


@lru_cache(maxsize=4096)
def tile_of(problem: ConvProblem, tiling: GradientTiling) -> GradientTile:
    """The tile of a workgroup."""
    slides = zip(problem.filter, problem.stride, problem.dilation, strict=True)
    return GradientTile(
        images=tiling.images,
        pixels=tiling.pixels,
        slides=tuple(Slid(*one) for one in slides),
        sources=problem.c * tiling.joined_groups,
        results=problem.k * tiling.joined_groups,
        merged_groups=tiling.merged_groups,
        wave_pieces=tiling.wave_pieces,
    )


def tiles(problem: ConvProblem, tiling: GradientTiling) -> int:
    """Tiles of merged groups."""
    return math.prod(tile_of(problem, tiling).tiles(problem.n, problem.out_image))


def workgroups(problem: ConvProblem, tiling: GradientTiling) -> int:
    """Those of one part."""
    return problem.g // (tiling.joined_groups * tiling.merged_groups)


def lds_bytes(problem: ConvProblem, tiling: GradientTiling) -> int:
    """LDS of a workgroup."""
    tile = tile_of(problem, tiling)
    return tiling.stages * tile.stage_bytes(tile.is_ragged(problem.n, problem.out_image))


def resident(problem: ConvProblem, target: Target, tiling: GradientTiling) -> int:
    """Workgroups that a unit runs at a time, by LDS, registers and threads."""
    tile = tile_of(problem, tiling)
    registers = tile.sums + GRADIENT_WINDOWS.other_registers
    return held(target, tile.threads, registers, lds_bytes(problem, tiling))


def predict(problem: ConvProblem, target: Target, tiling: GradientTiling, parts: int) -> float:
    """Seconds of the kernel and of the one that adds parts, their launches among them.

    A workgroup's tile takes what LDS or the matrix unit need for all workgroups of its unit, or
    what one of them waits for. Of this work and the memory's traffic a part of the shorter one is
    not hidden behind the longer one. Copies are counted as traffic alone.
    """
    chip, table = target.clock_ghz * GIGA, GRADIENT_WINDOWS
    tile = tile_of(problem, tiling)
    pairs = tile.wave_groups * len(tile.rows)
    read = tile.waves * tile.steps * (2 * pairs + tile.wave_pieces) * PIECE_READ
    products = tile.waves * tile.steps * pairs * tile.group_pieces * PRODUCTS
    rate = wave_products(target, table.cycle_products)
    busy = max(read / table.lds_cycle_bytes, products / rate)
    most = resident(problem, target, tiling)
    grid = -(-workgroups(problem, tiling) * parts // target.compute_units)
    own = -(-tiles(problem, tiling) // parts)
    alone = tile.steps * pairs * table.step_cycles
    rounds, rest = divmod(grid, most)
    cycles = rounds * (table.other_cycles + own * max(most * busy, alone))
    cycles += (table.other_cycles + own * max(rest * busy, alone)) if rest else 0.0
    shorter, longer = sorted((cycles / chip, _memory_seconds(problem, target, tiling)))
    added = sum_seconds(problem, target, parts) if parts > 1 else 0.0
    return table.launch_cycles / chip + longer + table.apart_share * shorter + added


def _memory_seconds(problem: ConvProblem, target: Target, tiling: GradientTiling) -> float:
    """Seconds of the traffic of both operands, which stay in the last cache where they are small.

    What windows have in common comes from that cache, at another rate.
    """
    tile = tile_of(problem, tiling)
    sources, results = tile.planes
    copied = (tile.window * sources + tile.count * results) * PIECE_BYTES
    copied *= tiles(problem, tiling) * workgroups(problem, tiling)
    operands = (math.prod(problem.input_shape) + math.prod(problem.output_shape)) * HALF
    bytes_ = operands + GRADIENT_WINDOWS.common_share * max(0, copied - operands)
    seconds = bytes_ / (GRADIENT_WINDOWS.memory_share * target.memory_gb_per_s * GIGA)
    is_cached = operands < WARP_GROUPS.cached_share * last_level_bytes(target)
    return seconds / GRADIENT_WINDOWS.cached_times if is_cached else seconds
