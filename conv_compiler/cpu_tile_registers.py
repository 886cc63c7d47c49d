"""Which block of tile registers a CPU kernel keeps its sums in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.cpu_tiles import LONGEST_TAP_TILE, loop_order, loop_sizes
from conv_compiler.host import TILE_REGISTERS, TILE_ROWS
from conv_compiler.strategy import CpuTiling

if TYPE_CHECKING:
    from conv_compiler.problem import ConvProblem

# Cycles between two products of tiles, until a sum can be added to again, and between two loads:
# Intel's Optimization Reference Manual, chapter 20.
PRODUCT_CYCLES, SUM_LATENCY, LOAD_CYCLES = 16, 52, 8
LANES = "c"


def tile_tilings(
    problem: ConvProblem, instruction: str, wanted: tuple[int, ...] = ()
) -> tuple[CpuTiling, ...]:
    """The block that takes the fewest cycles; with a `wanted` one, that or none. None where rows or
    lanes have one trip, or nothing is summed."""
    parallel, summed = loop_order(problem, LANES)
    if LANES not in parallel or "k" not in parallel or not summed:
        return ()
    found = sorted(
        (cycles, tuple(tile[p] for p in parallel))
        for cycles, tile in _blocks(problem)
        if wanted in ((), tuple(tile[p] for p in parallel))
    )
    return tuple(
        CpuTiling(
            loops=(*parallel, *summed),
            vector_parallel=(*tile, *(0 for _ in summed)),
            instruction=instruction,
        )
        for _, tile in found[:1]
    )


def _blocks(problem: ConvProblem) -> Iterator[tuple[tuple[float, ...], dict[str, int]]]:
    """Every block whose sums and factors fit the registers; cycles of the whole problem first."""
    sizes, taps = loop_sizes(problem), FILTER_LOOPS[-problem.ndim :]
    windows = [
        (1, f) if 1 < f <= LONGEST_TAP_TILE and d == 1 else (1,)
        for f, d in zip(problem.filter, problem.dilation, strict=True)
    ]
    for *window, rows, lanes in product(*windows, *[range(1, TILE_REGISTERS)] * 2):
        images = math.prod(window) * lanes
        # A factor of the image comes and goes.
        if rows * images + rows + 1 > TILE_REGISTERS:
            continue
        tile = {
            "g": 1,
            "k": rows * TILE_ROWS,
            **dict(zip(taps, window, strict=True)),
            LANES: lanes * TILE_ROWS,
        }
        busy = max(rows * images * PRODUCT_CYCLES, (rows + images) * LOAD_CYCLES, SUM_LATENCY)
        tiles = math.prod(-(-sizes[p] // t) for p, t in tile.items())
        yield (tiles * busy, tiles * (rows + images)), tile
