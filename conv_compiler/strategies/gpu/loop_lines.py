# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes of cache lines that an iteration of the matrix kernel's main loop reads from L2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.lds_copies import (
    LINE_BYTES,
    Copy,
    tile_line_bytes,
    tiling_lds_bytes,
)
from conv_compiler.strategies.gpu.loop_order import along_gemm_k
from conv_compiler.strategies.gpu.operand_copies import operand_copies
from conv_compiler.strategies.gpu.operand_memory import pitches
from conv_compiler.strategies.gpu.tail_masking import is_cdna
from conv_compiler.strategies.gpu.tilings import item_of
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target


def line_bytes(problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> float:
    """Bytes of the cache lines that a wave reads: each once, where L1 holds the tiles in use.

    On RDNA these are the tiles of two iterations, where an operand lies along gemm_k; of groups L1
    keeps the parts that the next taps read. On CDNA they are, of loads to LDS, the tiles of all
    workgroups that LDS has room for.
    """
    used = tiling_lds_bytes(mma, tiling, item_of(problem, target))
    residents = max(1, rank_facts(target).lds_bytes // used)
    waves, l1_bytes = math.prod(tiling.subgroups), rank_facts(target).l1_bytes
    lanes = target.subgroup_size

    def lines_of(copy: Copy) -> float:
        # L1 keeps a line for a thread's next loads if it holds what one load of all waves touches.
        # All rows of the tile come before the next part of a row, so it must hold these, too.
        touched = residents * waves * lanes * max(copy.spread_bytes, copy.line_bytes)
        return copy.again_bytes if touched > l1_bytes else copy.line_bytes

    lines = sum(map(lines_of, operand_copies(problem, target, tiling, mma))) * lanes
    if is_cdna(target):
        is_kept, iterations, held = tiling.loads_to_lds, 1, residents
    else:
        is_kept, iterations, held = max(along_gemm_k(problem, target)) > 1, 2, 1
    tiles = _tile_lines(problem, target, tiling, iterations)
    if not is_kept or held * tiles > l1_bytes:
        return lines
    return min(lines, tiles / iterations / waves)


def _tile_lines(problem: ConvProblem, target: Target, tiling: GpuTiling, iterations: int) -> int:
    """Bytes of the lines that so many iterations of a workgroup read, each once.

    Iterations share lines where the elements of one lie behind those of the other.
    """
    m, n, k = tiling.workgroup
    size, line = operand_bytes(problem, target), LINE_BYTES if problem.g == 1 else 1
    found = 0
    sides = zip((m, n), along_gemm_k(problem, target), pitches(problem), strict=True)
    for rows, along, pitch in sides:
        joined = iterations if along >= iterations * k else 1
        apart = pitch if along == 1 else 0
        tile = tile_line_bytes((rows, joined * k), (1, along), size, line, apart)
        found += iterations // joined * tile
    return found
