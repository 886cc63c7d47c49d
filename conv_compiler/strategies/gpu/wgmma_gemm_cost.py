# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels of wave groups take: rounds of workgroups, and the sum of the parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import WarpGroupTiling
    from conv_compiler.targets import Target

BYTES, FLOAT = 2, 4
PIECE = 8  # channels of 16 bytes, which a thread copies at a time
BLOCK = 64  # channels of a row of LDS
ROW_PAD = 8  # floats behind a row of sums in LDS (`passes/wgmma_parts/stores.py`)
UNIT_THREADS = 2048
SUM_THREADS = 256  # of a workgroup that adds parts
QUAD = 4  # weights of such a thread
GIGA = 1e9
ROWS, DEPTH = 64, 16  # of an instruction, whose columns are the wave group's


def columns_of(problem: ConvProblem) -> int:
    """Columns that share tiles: input channels of a tap, or of all taps where they do not come in
    blocks. Channels are rounded up to whole pieces."""
    whole, taps = -(-problem.c // PIECE) * PIECE, math.prod(problem.filter)
    return whole if whole % BLOCK == 0 else whole * taps


def column_tiles(problem: ConvProblem, n: int) -> int:
    """Tiles of so many columns, of all taps."""
    columns, whole = columns_of(problem), -(-problem.c // PIECE) * PIECE
    return -(-columns // n) * (whole * math.prod(problem.filter) // columns)


def workgroups(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Those of one part."""
    m, n, _ = tiling.workgroup
    return -(-problem.k // m) * column_tiles(problem, n) * problem.g


def k_tiles(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Tiles of gemm_k, the last one perhaps in part."""
    return -(-problem.gemm_k // tiling.workgroup[2])


def lds_bytes(tiling: WarpGroupTiling) -> int:
    """LDS of a workgroup: the stages, and then the sums in their place."""
    m, n, k = tiling.workgroup
    return max(tiling.stages * (m + n) * k * BYTES, m * (n + ROW_PAD) * FLOAT)


def resident(target: Target, tiling: WarpGroupTiling) -> int:
    """Workgroups that a unit runs at a time, by LDS and by registers."""
    m, n, _ = tiling.workgroup
    threads = math.prod(tiling.warp_groups) * 128
    registers = m * n // threads + WARP_GROUPS.other_registers
    by_registers = 64 * 1024 // (threads * registers)
    by_lds = (target.lds_bytes + WARP_GROUPS.reserved_lds_bytes) // (
        lds_bytes(tiling) + WARP_GROUPS.reserved_lds_bytes
    )
    return max(1, min(by_registers, by_lds, UNIT_THREADS // threads))


def sum_slices(problem: ConvProblem, target: Target, split_k: int) -> int:
    """Slices of the parts that threads of a workgroup add side by side: so many that there are
    threads enough for the chip, and of two parts or more."""
    threads = math.prod(problem.weight_shape) / QUAD
    enough = target.compute_units * WARP_GROUPS.sum_unit_threads
    slices = 1
    while slices < WARP_GROUPS.most_sum_slices and slices * 4 <= split_k:
        if threads * slices >= enough:
            break
        slices *= 2
    return slices


def predict(problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int) -> float:
    """Seconds of the matrix kernel, and of the kernel that adds parts where there are several."""
    added = sum_seconds(problem, target, split_k) if split_k > 1 else 0.0
    return kernel_seconds(problem, target, tiling, split_k) + added


def kernel_seconds(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int
) -> float:
    """Seconds of the matrix kernel, its launch among them."""
    chip = target.clock_ghz * GIGA
    grid = workgroups(problem, tiling) * split_k
    most = resident(target, tiling)
    rounds, rest = divmod(-(-grid // target.compute_units), most)
    operands = _operand_bytes(problem)
    is_cached = operands < WARP_GROUPS.cached_share * last_level_bytes(target)
    cycles = rounds * _round_cycles(problem, tiling, split_k, most, is_cached)
    if rest:
        cycles += _round_cycles(problem, tiling, split_k, rest, is_cached)
    seconds = cycles / chip
    if not is_cached:
        rate = WARP_GROUPS.memory_share * target.memory_gb_per_s * GIGA
        seconds = max(seconds, operands / rate)
    return WARP_GROUPS.launch_cycles / chip + seconds


def _operand_bytes(problem: ConvProblem) -> int:
    """Bytes of both operands, but for pixels between strides that no tap meets."""
    met = math.prod(
        min(extent, outs * taps)
        for extent, outs, taps in zip(problem.image, problem.out_image, problem.filter, strict=True)
    )
    outs = math.prod(problem.out_image)
    return problem.n * problem.g * (problem.c * met + problem.k * outs) * BYTES


def last_level_bytes(target: Target) -> int:
    """Of the chip's last cache, 0 where nothing is known."""
    return target.pipes.last_level_bytes if target.pipes else 0


def _round_cycles(
    problem: ConvProblem, tiling: WarpGroupTiling, split_k: int, together: int, is_cached: bool
) -> float:
    """Cycles of so many workgroups that share a unit from their start to their end.

    An iteration takes what LDS or the matrix unit need for all of them, or what one waits for: its
    own instructions, or a tile that was asked for some iterations before.
    """
    m, n, k = tiling.workgroup
    columns = n // tiling.warp_groups[1]
    instructions = m * n // (ROWS * columns) * k // DEPTH
    lds = instructions * (ROWS + columns) * DEPTH * BYTES + (m + n) * k * BYTES
    busy = together * max(lds / WARP_GROUPS.lds_cycle_bytes, m * n * k / WARP_GROUPS.cycle_products)
    least = WARP_GROUPS.plain_iteration_cycles
    if not problem.is_pointwise:
        busy *= WARP_GROUPS.window_times
        least = WARP_GROUPS.window_iteration_cycles
    if not is_cached:
        ahead = tiling.stages - WARP_GROUPS.stages_behind_tiles
        least = max(least, WARP_GROUPS.memory_latency_cycles / ahead)
    iterations = -(-k_tiles(problem, tiling) // split_k)
    stored = together * m * n * FLOAT / WARP_GROUPS.store_cycle_bytes
    return WARP_GROUPS.other_cycles + iterations * max(least, busy) + stored


def sum_seconds(problem: ConvProblem, target: Target, split_k: int) -> float:
    """Seconds of the kernel that adds parts, its launch among them."""
    moved = math.prod(problem.weight_shape) * (split_k * FLOAT + problem.result_type.bytes)
    cycles = WARP_GROUPS.sum_launch_cycles + moved / WARP_GROUPS.sum_cycle_bytes
    return cycles / (target.clock_ghz * GIGA)
