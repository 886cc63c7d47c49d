# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one workgroup takes of a problem on the CPU, and how evenly cores are loaded by that."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.model.met_pixels import met_elements
from conv_compiler.strategies.cpu.cost_constants import (
    DISTRIBUTIONS,
    MOVES,
    NEIGHBOURS,
    REGISTER_TILES,
)
from conv_compiler.strategies.cpu.register_tiles import CPU, largest_divisor, loop_sizes
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.cpu_tilings import CpuTiling


class Shares(NamedTuple):
    """Elements moved, and the iterations of each parallel loop that one workgroup takes."""

    cost: float
    share: dict[str, int]


def shares(problem: ConvProblem, tiling: CpuTiling, parts: int, cores: int) -> Shares:
    """The distribution that moves the fewest elements, with gemm_k in `parts`.

    There are about `DistributionSearch.core_workgroups` workgroups for each core. The image that
    taps meet is read once for each share of k and of the taps, the gradient once for each share of
    c and of the taps. Partial sums are written and read. Short pieces of rows count for more. The
    whole counts for more where cores wait for the busiest one.
    """
    sizes = loop_sizes(problem)
    tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    tiles = {p: -(-sizes[p] // t) for p, t in tile.items()}
    wanted = DISTRIBUTIONS.core_workgroups * cores
    enough = min(-(-wanted // parts), math.prod(tiles.values()))
    image, gradient = met_elements(problem), math.prod(problem.output_shape)
    lanes, partials = list(tile)[-1], math.prod(problem.weight_shape) * (parts if parts > 1 else 0)
    found = []
    for numbers in product(*(divisors(count, enough) for count in tiles.values())):
        if (workgroups := math.prod(numbers)) < enough:
            continue
        count = dict(zip(tiles, numbers, strict=True))
        taps = math.prod(n for loop, n in count.items() if loop in FILTER_LOOPS)
        row = tiles[lanes] // count[lanes] * tile[lanes] * operand_bytes(problem, CPU)
        moved = taps * (image * count.get("k", 1) + gradient * count.get("c", 1))
        cost = moved * (1 + MOVES.short_row_bytes / row) + MOVES.partial_times * partials
        cost *= 1 + load_imbalance(parts * workgroups, cores)
        found.append((cost, workgroups, tuple(count.items())))
    cost, _, best = min(found)
    return Shares(cost, {loop: tiles[loop] // n * tile[loop] for loop, n in best})


def in_runs(workgroups: int, cores: int) -> bool:
    """Whether IREE's workers take neighbouring workgroups in runs, or one by one."""
    return workgroups >= NEIGHBOURS.run_workgroups * cores


def load_imbalance(workgroups: int, cores: int) -> float:
    """How much longer the busiest core works than the mean, as a share of the mean.

    It is 0.5 for 24 workgroups on two cores, which are handed out as 8 and 8 and then 8 more to
    one.
    """
    run = NEIGHBOURS.run_workgroups if in_runs(workgroups, cores) else 1
    runs, rest = divmod(workgroups, run)
    each, more = divmod(runs, cores)
    busiest = each * run + (run if more else rest)
    return busiest * cores / workgroups - 1


def divisors(number: int, most: int) -> tuple[int, ...]:
    """Divisors of a number up to the first that is `most` or more."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    found = sorted({*small, *(number // d for d in small)})
    return tuple(d for i, d in enumerate(found) if i == 0 or found[i - 1] < most)


def cache_tiles(
    problem: ConvProblem, lengths: dict[str, int], share: dict[str, int]
) -> dict[str, int]:
    """Iterations of each summed loop whose operands stay in cache, innermost loops filled first.

    `lengths` are the iterations of the summed loops, `share` those of a workgroup's parallel loops.
    """
    groups, rows = share.get("g", 1), share.get("k", 1) + share.get("c", 1)
    pixel_bytes = groups * rows * operand_bytes(problem, CPU)
    budget = max(REGISTER_TILES.least_pixels, REGISTER_TILES.cache_bytes // pixel_bytes)
    tiles: dict[str, int] = {}
    for loop in reversed(lengths):
        tile = largest_divisor(lengths[loop], budget)
        if tile == 1 < budget and not tiles:
            tile = lengths[loop]  # a long prime: any tile would be one pixel
        tiles[loop] = tile
        budget = budget // tile if tile == lengths[loop] else 1
    return {loop: tiles[loop] for loop in lengths}
