"""How a kernel of vectors is dealt out to threads, by what copying its operands costs.

A workgroup copies what it reads for one tile of the summed loops at a time (`passes/packed_operands
.py`) to its thread's stack. The larger the tile the fewer times sums are loaded and stored, and the
fewer rows of the image are copied for two tiles.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS
from conv_compiler.cpu_splits import deep_loop, part_lengths
from conv_compiler.cpu_tiles import (
    PARTIAL_MOVES,
    WORKGROUPS_PER_CORE,
    divisors,
    lanes_of,
    loop_sizes,
)
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.host import TILE_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.host import VectorUnit
    from conv_compiler.problem import ConvProblem
    from conv_compiler.processors import Processor
    from conv_compiler.strategy import CpuTiling


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a kernel's copies may take of a thread's stack, and cycles, fitted on such kernels.

    `row` is to copy a row that lies in one piece, to find it and to wait for it, and `vector` for
    each vector of it, both for each image that an element holds data of. Once a copy `sums` is to
    load and store a vector of sums, out of the second cache, and `tile` to start a register tile.
    """

    stack_bytes: int
    row: float
    vector: float
    sums: float
    tile: float


# IREE's workers have 131072 bytes of stack (its flag `task_worker_stack_size`).
VECTORS = Costs(stack_bytes=96 * 2**10, row=8, vector=4, sums=4, tile=20)
TILES = Costs(stack_bytes=96 * 2**10, row=4, vector=3, sums=5, tile=40)
# To move a vector of partial sums in memory.
MOVE_CYCLES = 8
# How many times more workgroups than wanted are looked at; and again as many times more where the
# copies of none fit.
FINER = 16


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Elements of an operand's copy, with room for the end of a last vector, and the pieces of
    memory that they come from."""

    elements: int
    rows: float


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Trips of each parallel loop a workgroup takes and of each summed loop it copies for, and the
    cycles that copies and partial sums take in all."""

    share: dict[str, int]
    cache: dict[str, int]
    cycles: float


@lru_cache(maxsize=256)
def best_deal(problem: ConvProblem, tiling: CpuTiling, parts: int, processor: Processor) -> Deal:
    """The cheapest deal of gemm_k in `parts` whose copies fit the stack.

    Raises UnsupportedStrategy where those of one register tile and one pixel do not.
    """
    tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    counts = {p: -(-loop_sizes(problem)[p] // t) for p, t in tile.items()}
    lengths = part_lengths(problem, tiling, parts)
    wanted = -(-WORKGROUPS_PER_CORE * processor.cores // parts)
    enough = min(wanted, math.prod(counts.values()))
    found: list[Deal] = []
    most = FINER * enough
    while not found:
        if most > FINER * FINER * max(enough, *counts.values()):
            raise UnsupportedStrategy(
                f"tile {'x'.join(map(str, tile.values()))}: one pixel of its operands takes over "
                f"{costs_of(tiling.instruction).stack_bytes} bytes; use a smaller one"
            )
        found = list(
            _deals(problem, tiling, tile, counts, lengths, parts, enough, most, processor.unit)
        )
        most *= FINER
    return min(found, key=lambda deal: (deal.cycles, tuple(deal.share.values())))


def _deals(
    problem: ConvProblem,
    tiling: CpuTiling,
    tile: Mapping[str, int],
    counts: Mapping[str, int],
    lengths: dict[str, int],
    parts: int,
    enough: int,
    most: int,
    unit: VectorUnit,
) -> Iterator[Deal]:
    """Deals of `enough` workgroups a part or more, each loop cut about `most` ways at most."""
    lanes, factors = lanes_of(unit, problem), factors_of(tiling.instruction)
    deep, step = deep_loop(lengths) if tiling.instruction in TILE_INSTRUCTIONS else ("", 1)
    costs = costs_of(tiling.instruction)
    for dealt in product(*(divisors(count, most) for count in counts.values())):
        share = {p: counts[p] // n * tile[p] for p, n in zip(counts, dealt, strict=True)}
        if (
            math.prod(dealt) >= enough
            and (cache := _cache(problem, share, lengths, unit, deep, step, costs)) is not None
        ):
            workgroups = parts * math.prod(dealt)
            chunks = math.prod(-(-lengths[p] // cache[p]) for p in lengths)
            sums = math.prod(share.values()) / lanes
            moved = sum(
                copy.rows * costs.row + copy.elements / lanes * costs.vector
                for copy in copies(problem, share, cache, unit, deep)
            )
            starts = math.prod(size // tile[p] for p, size in share.items())
            a_copy = factors * moved + sums * costs.sums + starts * costs.tile
            cycles = workgroups * chunks * a_copy
            if parts > 1:
                cycles += PARTIAL_MOVES * workgroups * sums * MOVE_CYCLES
            yield Deal(share=share, cache=cache, cycles=cycles)


def costs_of(instruction: str) -> Costs:
    """Those of a kernel of tiles, or of vectors."""
    return TILES if instruction in TILE_INSTRUCTIONS else VECTORS


def factors_of(instruction: str) -> int:
    """Images whose data stand in one element of a copy."""
    if row := TILE_INSTRUCTIONS.get(instruction):
        return row.products
    return 2 if instruction else 1


def copies(
    problem: ConvProblem,
    share: Mapping[str, int],
    cache: Mapping[str, int],
    unit: VectorUnit,
    deep: str = "",
) -> tuple[Copy, Copy]:
    """The copies of image and gradient; `deep` is the loop that tiles sum, innermost in the copy
    that has not the lanes."""
    taps, pixels = FILTER_LOOPS[-problem.ndim :], OUTPUT_LOOPS[-problem.ndim :]
    reach = [
        (cache.get(p, 1) - 1) * stride + (share.get(t, 1) - 1) * dilation + 1
        for p, t, stride, dilation in zip(
            pixels, taps, problem.stride, problem.dilation, strict=True
        )
    ]
    inner = list(share)[-1]
    layout, lanes = problem.layout_row.grouped, lanes_of(unit, problem)
    images = {"n": cache.get("n", 1), "g": share.get("g", 1)}
    image = images | {"c": share.get("c", 1), **dict(zip(pixels, reach, strict=True))}
    gradient = images | {"k": share.get("k", 1), **{p: cache.get(p, 1) for p in pixels}}
    return (
        _copy(problem, layout.input, image, inner, lanes, deep if inner == "k" else ""),
        _copy(problem, layout.output, gradient, inner, lanes, deep if inner == "c" else ""),
    )


def _copy(
    problem: ConvProblem,
    letters: str,
    extents: dict[str, int],
    inner: str,
    vector: int,
    deep: str = "",
) -> Copy:
    """The copy of a tensor of such axes, with so many elements along each; loop `deep` of tiles is
    innermost in it, or `inner`, if it has that."""
    inner = deep or inner
    sizes, pixels = loop_sizes(problem), OUTPUT_LOOPS[-problem.ndim :]
    axes = [p for letter in letters.lower() for p in (pixels if letter == "*" else letter)]
    piece = 1
    for letter in reversed(letters.lower()):
        piece *= extents[pixels[-1]] if letter == "*" else extents[letter]
        if letter == "*" or extents[letter] < sizes[letter]:
            break
    behind = axes[axes.index(inner) + 1 :] if inner in axes else []
    turned = any(axis in pixels or sizes[axis] > 1 for axis in behind)
    rows = math.prod(extents.values()) / piece
    if deep and turned:
        extents[deep] = max(extents[deep], vector)
    is_cut = turned or any(problem.pad_low)
    room = (vector - 1) * (extents[inner] if turned else 1) if is_cut else 0
    return Copy(elements=math.prod(extents.values()) + room, rows=rows)


def _cache(
    problem: ConvProblem,
    share: Mapping[str, int],
    lengths: dict[str, int],
    unit: VectorUnit,
    deep: str,
    step: int,
    costs: Costs,
) -> dict[str, int] | None:
    """Trips of each summed loop whose copies fit, innermost loops filled first; None for none.

    Of loop `deep` whole steps."""
    units = {p: step if p == deep else 1 for p in lengths}
    found = dict(units)

    def fits(tiles: Mapping[str, int]) -> bool:
        elements = sum(copy.elements for copy in copies(problem, share, tiles, unit, deep))
        return elements * problem.accumulator_type.bytes <= costs.stack_bytes

    if not fits(found):
        return None
    for loop, length in reversed(lengths.items()):
        steps, one = range(1, length // units[loop] + 1), units[loop]
        most = bisect_right(steps, 0, key=lambda t: not fits({**found, loop: t * one}))
        found[loop] = -(-len(steps) // -(-len(steps) // most)) * one  # even tiles
        if most < len(steps):
            break
    return found
