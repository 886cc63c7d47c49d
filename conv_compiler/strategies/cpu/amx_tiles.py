# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU strategy that keeps its sums in the tile registers of AMX: when it fits, and which blocks
of registers a kernel has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.strategies.cpu.cost_constants import AMX, LANES, REGISTER_TILES
from conv_compiler.strategies.cpu.register_tiles import loop_order, loop_sizes
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.f8 import multiplied
from conv_compiler.targets.host import TILE_REGISTERS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target
    from conv_compiler.targets.host import TileInstruction


def tile_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """The block of tiles that takes the fewest cycles; with a `tile` asked for, that or none."""
    if tile_refusal(problem, target):
        return ()
    row = tile_instruction(problem, target)
    assert row is not None
    whole = problem.with_batch(-(-problem.n // row.products))
    parallel, summed = loop_order(whole, _lanes(problem))
    found = sorted(
        (cycles, tuple(block[p] for p in parallel))
        for cycles, block in _blocks(whole)
        if tile in ((), tuple(block[p] for p in parallel))
    )
    return tuple(
        Strategy(
            name="cpu_amx",
            tiling=CpuTiling(
                loops=(*parallel, *summed),
                vector_parallel=(*block, *(0 for _ in summed)),
                instruction=row.name,
            ),
        )
        for _, block in found[:1]
    )


def _lanes(problem: ConvProblem) -> str:
    """Whether input ("c") or output ("k") channels are the lanes of sums; the others are rows.

    In the copy of the operand with the rows pixels are innermost, in the other the lanes: one of
    the two is transposed as it is copied, by shuffles. Image rows need adjacent pixels.
    """
    last = not problem.layout_row.grouped.input.endswith("*")
    image, gradient = math.prod(problem.input_shape), math.prod(problem.output_shape)
    transposed_with_c, transposed_with_k = (gradient, image) if last else (image, gradient)
    worth_it = transposed_with_k * LANES.amx_transposed_times <= transposed_with_c
    return "k" if worth_it and set(problem.stride) == {1} else "c"


def tile_refusal(problem: ConvProblem, target: Target) -> str:
    """Why there are no `tile_candidates`; empty where there are."""
    row = tile_instruction(problem, target)
    if row is None:
        return instruction_refusal(problem, target, "tiles")
    if min(problem.c, problem.k) < LANES.least_amx_channels:
        return (
            f"groups of {problem.c} and {problem.k} channels leave tiles empty, "
            f"{LANES.least_amx_channels} do not"
        )
    one = problem.with_batch(-(-problem.n // row.products)).gemm_k == 1
    return "a sum has one product" if one else ""


def tile_instruction(problem: ConvProblem, target: Target) -> TileInstruction | None:
    """The instruction that multiplies the problem's data in tiles, if the CPU has one."""
    data = several_at_once(problem, target)
    return target.cpu.tile_instruction(data) if data else None


def several_at_once(problem: ConvProblem, target: Target) -> str:
    """The type of data of which an instruction might add several products: both operands have it,
    and there is more than one image. Empty where that is not so."""
    first, second = multiplied(problem, target)
    return first if first == second and problem.n > 1 else ""


def instruction_refusal(problem: ConvProblem, target: Target, what: str) -> str:
    """Why no instruction multiplies a problem's data in pairs or tiles."""
    if several_at_once(problem, target):
        return f"{target.name} multiplies no {what} of {problem.dtype}"
    return "one image has no other to go with" if problem.n == 1 else "operands of two types"


def _blocks(problem: ConvProblem) -> Iterator[tuple[tuple[float, ...], dict[str, int]]]:
    """Every block whose sums and factors fit the registers; cycles of the whole problem first."""
    sizes, taps = loop_sizes(problem), FILTER_LOOPS[-problem.ndim :]
    windows = [
        (1, f) if 1 < f <= REGISTER_TILES.most_taps and d == 1 else (1,)
        for f, d in zip(problem.filter, problem.dilation, strict=True)
    ]
    for *window, k, c in product(*windows, *[range(1, TILE_REGISTERS)] * 2):
        images = math.prod(window) * c
        # A factor of the image comes and goes.
        if k * images + k + 1 > TILE_REGISTERS:
            continue
        tile = {
            "g": 1,
            "k": k * TILE_ROWS,
            "c": c * TILE_ROWS,
            **dict(zip(taps, window, strict=True)),
        }
        busy = max(
            k * images * AMX.product_cycles, (k + images) * AMX.load_cycles, AMX.sum_latency_cycles
        )
        tiles = math.prod(-(-sizes[p] // t) for p, t in tile.items())
        yield (tiles * busy, tiles * (k + images)), tile
