# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels with copies to LDS take: rounds of workgroups, and the sum of the parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS, WAVES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.gpu.cost_constants import WarpGroups
    from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling
    from conv_compiler.targets import Target

HALF, FLOAT = 2, 4  # bytes
PIECE_BYTES = 16  # that a thread copies at a time
LINE_BYTES = 128  # of a row of LDS
PIECE = PIECE_BYTES // HALF  # channels of a piece, of 16-bit types
# Floats behind a row of sums in LDS, and words behind one of rounded pairs
# (`passes/wgmma_parts/stores.py`).
ROW_PAD, NARROW_PAD = 8, 4
UNIT_THREADS = 2048
UNIT_REGISTERS = 64 * 1024
SUM_THREADS = 256  # of a workgroup that adds parts
QUAD = 4  # weights of such a thread
GIGA = 1e9
ROWS = 64  # of an instruction of wave groups
STEP_BYTES = 32  # of an instruction along gemm_k


def table_of(tiling: WarpGroupTiling) -> WarpGroups:
    """The constants of a tiling's instruction."""
    return WARP_GROUPS if tiling.by_wave_groups else WAVES


def element_bytes(problem: ConvProblem) -> int:
    """Of an element of the operands, which have one type."""
    return DTYPES[problem.operand_dtypes[0]].bytes


def piece_of(problem: ConvProblem) -> int:
    """Channels that a thread copies at a time."""
    return PIECE_BYTES // element_bytes(problem)


def block_of(problem: ConvProblem) -> int:
    """Channels of a row of LDS."""
    return LINE_BYTES // element_bytes(problem)


def columns_of(problem: ConvProblem, merged: int = 1) -> int:
    """Columns that share tiles: input channels of a tap, or of all taps where they do not come in
    blocks or are those of merged groups. Channels are rounded up to whole pieces."""
    taps = math.prod(problem.filter)
    whole = whole_channels(problem.c, piece_of(problem)) * merged
    if merged > 1:
        return problem.c * merged * taps
    return whole if whole % block_of(problem) == 0 else whole * taps


def whole_channels(channels: int, piece: int = PIECE) -> int:
    """Channels in whole pieces."""
    return -(-channels // piece) * piece


def whole_elements(shape: tuple[int, ...], channels: int, piece: int = PIECE) -> int:
    """Elements of a tensor whose channels are rounded up to whole pieces."""
    return math.prod(shape) // channels * whole_channels(channels, piece)


def column_tiles(problem: ConvProblem, n: int, merged: int = 1) -> int:
    """Tiles of so many columns, of all taps."""
    columns = columns_of(problem, merged)
    own = whole_channels(problem.c, piece_of(problem)) if merged == 1 else problem.c * merged
    every = own * math.prod(problem.filter)
    return -(-columns // n) * (every // columns)


def workgroups(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Those of one part."""
    (m, n, _), merged = tiling.workgroup, tiling.merged_groups
    return -(-problem.k * merged // m) * column_tiles(problem, n, merged) * (problem.g // merged)


def k_tiles(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Tiles of gemm_k, the last one perhaps in part."""
    return -(-problem.gemm_k // tiling.workgroup[2])


def lds_bytes(tiling: WarpGroupTiling, stages: int = 0, is_narrow: bool = False) -> int:
    """LDS of a workgroup: its stages, or as many as it has tiles for; then in their place the sums,
    or pairs of them that are rounded to 16 bits."""
    m, n, k = tiling.workgroup
    row = n * HALF + NARROW_PAD * FLOAT if is_narrow else (n + ROW_PAD) * FLOAT
    return max((stages or tiling.stages) * (m + n) * k * tiling.element_bytes, m * row)


def resident(
    target: Target, tiling: WarpGroupTiling, stages: int = 0, is_narrow: bool = False
) -> int:
    """Workgroups that a unit runs at a time, by LDS and by registers."""
    registers = tiling.thread_sums + table_of(tiling).other_registers
    return held(target, tiling.threads, registers, lds_bytes(tiling, stages, is_narrow))


def held(target: Target, threads: int, registers: int, lds: int) -> int:
    """Workgroups of so many threads, registers a thread and bytes of LDS that a unit runs at a
    time; one where a unit has too little for any."""
    reserved = WARP_GROUPS.reserved_lds_bytes
    by_lds = (target.lds_bytes + reserved) // (lds + reserved)
    return max(1, min(UNIT_REGISTERS // (threads * registers), by_lds, UNIT_THREADS // threads))


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
    """Seconds of the matrix kernel, of the kernel that adds parts where there are several, and of
    those that round channels up."""
    added = sum_seconds(problem, target, split_k) if split_k > 1 else 0.0
    if tiling.merged_groups == 1:
        size = tiling.element_bytes
        added += copied_seconds(math.prod(problem.input_shape), problem.c, target, size)
        added += copied_seconds(math.prod(problem.output_shape), problem.k, target, size)
    return kernel_seconds(problem, target, tiling, split_k) + added


def copied_seconds(elements: int, channels: int, target: Target, size: int) -> float:
    """Seconds of a kernel that rounds the channels of so many elements of some bytes up; 0 where
    it is none."""
    whole = channels % (PIECE_BYTES // size) == 0
    return 0.0 if whole else written_seconds(elements, channels, target, size)


def written_seconds(elements: int, channels: int, target: Target, size: int) -> float:
    """Seconds of a kernel that writes so many elements again, their channels in whole pieces."""
    whole = whole_channels(channels, PIECE_BYTES // size)
    moved = elements * size * (1 + whole / channels)
    cycles = WARP_GROUPS.copy_launch_cycles + moved / WARP_GROUPS.copy_cycle_bytes
    return cycles / (target.clock_ghz * GIGA)


def kernel_seconds(
    problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int
) -> float:
    """Seconds of the matrix kernel, its launch among them."""
    chip, table = target.clock_ghz * GIGA, table_of(tiling)
    grid = workgroups(problem, tiling) * split_k
    part = -(-k_tiles(problem, tiling) // split_k)
    most = resident(target, tiling, min(part, tiling.stages), split_k == 1)
    rounds, rest = divmod(-(-grid // target.compute_units), most)
    operands = _operand_bytes(problem)
    is_cached = operands < table.cached_share * last_level_bytes(target)
    cycles = rounds * _round_cycles(problem, target, tiling, split_k, most, is_cached)
    if rest:
        cycles += _round_cycles(problem, target, tiling, split_k, rest, is_cached)
    seconds = cycles / chip
    if not is_cached:
        rate = table.memory_share * target.memory_gb_per_s * GIGA
        seconds = max(seconds, operands / rate)
    return table.launch_cycles / chip + seconds


def _operand_bytes(problem: ConvProblem) -> int:
    """Bytes of both operands, but for pixels between strides that no tap meets."""
    met = math.prod(
        min(extent, outs * taps)
        for extent, outs, taps in zip(problem.image, problem.out_image, problem.filter, strict=True)
    )
    outs = math.prod(problem.out_image)
    return problem.n * problem.g * (problem.c * met + problem.k * outs) * element_bytes(problem)


def last_level_bytes(target: Target) -> int:
    """Of the chip's last cache, 0 where nothing is known."""
    return target.pipes.last_level_bytes if target.pipes else 0


def lds_traffic(tiling: WarpGroupTiling) -> int:
    """Bytes of LDS that an iteration of a workgroup moves: each wave group or wave reads its own
    rows and columns, and copies write both operands."""
    (m, n, k), (groups_m, groups_n) = tiling.workgroup, tiling.warp_groups
    rows = ROWS if tiling.by_wave_groups else m // groups_m
    columns = n // groups_n
    read = m * n // (rows * columns) * (rows + columns)
    return (read + m + n) * k * tiling.element_bytes


def cycle_products(target: Target, tiling: WarpGroupTiling, fitted: float) -> float:
    """Products of a unit in a cycle: those fitted on one card, no more than a chip's waves have.

    Of 32-bit types it has half as many.
    """
    products = fitted if tiling.by_wave_groups else wave_products(target, fitted)
    return products * HALF / tiling.element_bytes


def wave_products(target: Target, fitted: float) -> float:
    """Products of 16-bit types of a unit's waves in a cycle: as `cycle_products`."""
    known = target.wave_products
    return min(fitted, known) if known else fitted


def _round_cycles(
    problem: ConvProblem,
    target: Target,
    tiling: WarpGroupTiling,
    split_k: int,
    together: int,
    is_cached: bool,
) -> float:
    """Cycles of so many workgroups that share a unit from their start to their end.

    An iteration takes what LDS or the matrix unit need for all of them, or what one waits for: its
    own instructions, or a tile that was asked for some iterations before.
    """
    (m, n, k), table = tiling.workgroup, table_of(tiling)
    rate = cycle_products(target, tiling, table.cycle_products)
    busy = together * max(lds_traffic(tiling) / table.lds_cycle_bytes, m * n * k / rate)
    least = table.plain_iteration_cycles
    if columns_of(problem, tiling.merged_groups) > problem.c * tiling.merged_groups:
        busy *= table.joined_times
        least *= table.joined_times
    if not problem.is_pointwise:
        busy *= table.window_times
        least = table.window_iteration_cycles
    if not is_cached:
        ahead = tiling.stages - table.stages_behind_tiles
        least = max(least, table.memory_latency_cycles / ahead)
    iterations = -(-k_tiles(problem, tiling) // split_k)
    stored = together * m * n * FLOAT / table.store_cycle_bytes
    return table.other_cycles + iterations * max(least, busy) + stored


def sum_seconds(problem: ConvProblem, target: Target, split_k: int) -> float:
    """Seconds of the kernel that adds parts, its launch among them."""
    moved = math.prod(problem.weight_shape) * (split_k * FLOAT + problem.result_type.bytes)
    cycles = WARP_GROUPS.sum_launch_cycles + moved / WARP_GROUPS.sum_cycle_bytes
    return cycles / (target.clock_ghz * GIGA)
