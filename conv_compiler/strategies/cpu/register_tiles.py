"""Which tiles a CPU contraction gets: a count of the cycles each register tile would take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS, summed_loops
from conv_compiler.strategies.strategy import CpuTiling
from conv_compiler.targets import find_target
from conv_compiler.targets.f8 import operand_bytes
from conv_compiler.targets.host import VectorUnit
from conv_compiler.targets.limits import LINE_BYTES, PARTED_CHANNELS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

# No CPU has instructions for 8-bit floats: in this one is as good as another.
CPU = find_target("cpu")
# Multiply-adds and loads a core starts in a cycle; cycles until a sum can be added to again.
FMAS_PER_CYCLE = 2
LOADS_PER_CYCLE = 2
FMA_CYCLES = 4
# Broadcasts of one element to all lanes in a cycle: some come as shuffles of a loaded vector.
BROADCASTS_PER_CYCLE = 1
# Cycles a line of LINE_BYTES takes from the second cache, where a step finds new pixels.
LINE_CYCLES = 2
ROW_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
LONGEST_TAP_TILE = 8
# Both operands of one trip of the cache loop stay in a core's second cache; fewer pixels than the
# least and the sums are loaded and stored too often.
CACHE_BYTES = 256 * 1024
LEAST_PIXELS = 64
# Moving a piece of a row costs 1 + SHORT_ROW_BYTES / its length; a partial sum is moved so often.
SHORT_ROW_BYTES = 64
PARTIAL_MOVES = 3
# Workgroups wanted for each core, at least.
WORKGROUPS_PER_CORE = 4
# From so many a worker on, IREE's task system hands them out by so many, and one by one before
# (runtime/src/iree/task/tuning.h).
RUN = 8


@dataclass(frozen=True, kw_only=True)
class Copying:
    """How operands that do not lie as a tile needs them are made so, and the lanes it may have.

    Over what another one takes, an element takes `padded` cycles where a tile does not divide its
    axes, `turned` where the lanes lie apart, and `short` where what is between them fills no
    vectors.
    """

    lane_tiles: tuple[int, ...]
    padded: float
    turned: float
    short: float


# In memory, before the kernel; 48 lanes are single elements to IREE's vectoriser.
IN_MEMORY = Copying(lane_tiles=(1, 2, 4, 8, 16, 32, 64), padded=2, turned=2, short=2)
# By workgroups of a kernel of ours, which has 48 lanes in three registers.
BY_WORKGROUPS = Copying(lane_tiles=(4, 8, 16, 32, 48, 64), padded=1, turned=0.125, short=2)


@dataclass(frozen=True, kw_only=True)
class RegisterTile:
    """A register tile by loop, the cycles of the whole problem with it, and its sums in vectors."""

    tile: dict[str, int]
    cycles: float
    sums: int


@lru_cache(maxsize=256)
def loop_sizes(problem: ConvProblem) -> Mapping[str, int]:
    """Trip counts of the contraction's loops, unit ones included."""
    sizes = {
        "g": problem.g,
        "k": problem.k,
        "c": problem.c,
        **dict(zip(FILTER_LOOPS[-problem.ndim :], problem.filter, strict=True)),
        "n": problem.n,
        **dict(zip(OUTPUT_LOOPS[-problem.ndim :], problem.out_image, strict=True)),
    }
    return MappingProxyType(sizes)


def loop_order(problem: ConvProblem, lanes: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(parallel, summed) loops of more than one trip; channels, then taps, then the lanes."""
    sizes = loop_sizes(problem)
    channels = [loop for loop in ("g", "k", "c") if loop != lanes]
    parallel = (*channels, *FILTER_LOOPS[-problem.ndim :], lanes)
    summed = summed_loops(problem)
    return tuple(p for p in parallel if sizes[p] > 1), tuple(p for p in summed if sizes[p] > 1)


def largest_divisor(size: int, most: int) -> int:
    """The largest divisor of `size` up to `most`."""
    return next(d for d in range(min(size, max(most, 1)), 0, -1) if size % d == 0)


@lru_cache(maxsize=256)
def best_tiling(
    problem: ConvProblem,
    lanes: str,
    unit: VectorUnit,
    register_tile: tuple[int, ...] = (),
    copying: Copying = IN_MEMORY,
) -> tuple[float, CpuTiling] | None:
    """(modelled cycles, tiling) with one of g, k, c in vector lanes; None where it has one trip,
    where nothing is summed, or where the `register_tile` asked for does not fit. `unit` is the
    CPU's; `copying` says who copies operands."""
    parallel, summed = loop_order(problem, lanes)
    if lanes not in parallel or not summed:
        return None
    fitting = [
        one
        for one in _register_tiles(problem, lanes, unit, copying)
        if register_tile in ((), tuple(one.tile[p] for p in parallel))
    ]
    if not fitting:
        return None
    # Wider tiles of groups share nothing; of channels, the operand that is broadcast.
    best = min(fitting, key=lambda t: (t.cycles, t.sums if lanes == "g" else -t.sums))
    tile = tuple(best.tile[p] for p in parallel)
    return best.cycles, CpuTiling(
        loops=(*parallel, *summed), vector_parallel=(*tile, *(0 for _ in summed))
    )


def lanes_of(unit: VectorUnit, problem: ConvProblem) -> int:
    """Sums in a register."""
    return unit.lanes * 4 // problem.accumulator_type.bytes


def _register_tiles(
    problem: ConvProblem, lanes: str, unit: VectorUnit, copying: Copying
) -> Iterator[RegisterTile]:
    """Every register tile that fits the register file."""
    sizes = loop_sizes(problem)
    taps = FILTER_LOOPS[-problem.ndim :]
    # A dilated tap would step over pixels inside the tile.
    tap_tiles = [
        (1, f) if 1 < f <= LONGEST_TAP_TILE and d == 1 else (1,)
        for f, d in zip(problem.filter, problem.dilation, strict=True)
    ]
    rows = [[t for t in ROW_TILES if t <= sizes[p]] if p != lanes else [1] for p in ("k", "c")]
    widest = 1 << (sizes[lanes] - 1).bit_length()
    widths = [t for t in copying.lane_tiles if t <= max(widest, copying.lane_tiles[0])]
    for *window, k, c in product(*tap_tiles, *rows):
        if (tile_rows := math.prod(window) * k * c) > unit.most_sums:
            continue
        # Rows that lie apart in memory come as shuffles of vectors loaded around them.
        if lanes == "k" and math.prod(window) > 1 and c < sizes["c"]:
            continue
        for width in widths:
            vectors = -(-width // lanes_of(unit, problem))
            sums = tile_rows * vectors
            image = math.prod(window) * c * (vectors if lanes in "gc" else 1)
            gradient = k * (vectors if lanes in "gk" else 1)
            # Operands stay in registers where several sums use them; broadcasts come and go.
            held = {"c": image, "k": gradient, "g": min(image, gradient) + 1}[lanes]
            if sums > unit.most_sums or sums + held > unit.most_vectors:
                continue
            tile = {"g": 1, "k": k, "c": c, **dict(zip(taps, window, strict=True)), lanes: width}
            broadcasts = {"c": gradient, "k": image, "g": 0}[lanes]
            line = -(-width * problem.accumulator_type.bytes // LINE_BYTES)
            lines = (line * c if lanes in "gc" else 1) + (line * k if lanes in "gk" else 1)
            busy = max(
                sums / FMAS_PER_CYCLE,
                (image + gradient) / LOADS_PER_CYCLE,
                broadcasts / BROADCASTS_PER_CYCLE,
                lines * LINE_CYCLES,
                FMA_CYCLES,
            )
            tiles = math.prod(-(-sizes[p] // t) for p, t in tile.items())
            cycles = tiles * problem.gemm_k * busy + _copy_cycles(problem, lanes, tile, copying)
            yield RegisterTile(tile=tile, cycles=cycles, sums=sums)


def _copy_cycles(problem: ConvProblem, lanes: str, tile: dict[str, int], copying: Copying) -> float:
    """What copying takes of operands that must be copied because of the tile or the lanes."""
    sizes = loop_sizes(problem)
    row = problem.layout_row.grouped
    total = 0.0
    for letters, loops, shape in (
        (row.input, "gc", problem.input_shape),
        (row.output, "gk", problem.output_shape),
    ):
        inner, each = letters.lower()[-1], 0.0
        if any(sizes[p] % tile[p] for p in loops):
            each = copying.padded
        if lanes in loops and not innermost(letters, lanes, sizes):
            is_short = inner != "*" and sizes[inner] not in PARTED_CHANNELS
            each = max(each, copying.short if is_short else copying.turned)
        total += math.prod(shape) * each
    return total


def lies_ready(problem: ConvProblem, tiling: CpuTiling) -> bool:
    """Whether neither operand must be padded or transposed in memory for a tiling."""
    tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    whole = dict.fromkeys(loop_sizes(problem), 1) | tile
    padded = any((*problem.pad_low, *problem.pad_high))
    return not padded and not _copy_cycles(problem, list(tile)[-1], whole, IN_MEMORY)


def innermost(letters: str, lanes: str, sizes: Mapping[str, int]) -> bool:
    """Whether nothing of more than one trip lies inside the lanes' axis."""
    inner = letters.lower()[letters.lower().index(lanes) + 1 :]
    return all(letter != "*" and sizes[letter] == 1 for letter in inner)


def shares(
    problem: ConvProblem, tiling: CpuTiling, parts: int, cores: int
) -> tuple[float, dict[str, int]]:
    """(elements moved, trips of each parallel loop one workgroup takes) with gemm_k in `parts`.

    Workgroups number WORKGROUPS_PER_CORE for each of the cores, or a few more. Of the ways to deal
    the tiles out, the one by which the least is moved: the image once for each share of k and of
    the taps, the gradient for each share of c and of the taps, partial sums written and read. Short
    pieces of rows count for more, and so does all where cores wait for the last one.
    """
    sizes = loop_sizes(problem)
    tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    tiles = {p: -(-sizes[p] // t) for p, t in tile.items()}
    wanted = WORKGROUPS_PER_CORE * cores
    enough = min(-(-wanted // parts), math.prod(tiles.values()))
    image, gradient = math.prod(problem.input_shape), math.prod(problem.output_shape)
    lanes, partials = list(tile)[-1], math.prod(problem.weight_shape) * (parts if parts > 1 else 0)
    found = []
    for dealt in product(*(divisors(count, enough) for count in tiles.values())):
        if (workgroups := math.prod(dealt)) < enough:
            continue
        count = dict(zip(tiles, dealt, strict=True))
        taps = math.prod(n for loop, n in count.items() if loop in FILTER_LOOPS)
        row = tiles[lanes] // count[lanes] * tile[lanes] * operand_bytes(problem, CPU)
        moved = taps * (image * count.get("k", 1) + gradient * count.get("c", 1))
        cost = moved * (1 + SHORT_ROW_BYTES / row) + PARTIAL_MOVES * partials
        cost *= 1 + waiting(parts * workgroups, cores)
        found.append((cost, workgroups, tuple(count.items())))
    cost, _, best = min(found)
    return cost, {loop: tiles[loop] // n * tile[loop] for loop, n in best}


def in_runs(workgroups: int, cores: int) -> bool:
    """Whether IREE's workers take workgroups by RUN, neighbours together, or one by one."""
    return workgroups >= RUN * cores


def waiting(workgroups: int, cores: int) -> float:
    """How long cores wait for the last one, which has most of the workgroups, over what the whole
    takes: 0.5 for 24 on two cores, which are handed out as 8 and 8 and then 8 more to one."""
    run = RUN if in_runs(workgroups, cores) else 1
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
    """Trips of each summed loop whose operands stay in cache, innermost loops filled first.

    `lengths` are the trips of the summed loops, `share` those of a workgroup's parallel loops.
    """
    groups, rows = share.get("g", 1), share.get("k", 1) + share.get("c", 1)
    budget = max(LEAST_PIXELS, CACHE_BYTES // (groups * rows * operand_bytes(problem, CPU)))
    tiles: dict[str, int] = {}
    for loop in reversed(lengths):
        tile = largest_divisor(lengths[loop], budget)
        if tile == 1 < budget and not tiles:
            tile = lengths[loop]  # a long prime: any tile would be one pixel
        tiles[loop] = tile
        budget = budget // tile if tile == lengths[loop] else 1
    return {loop: tiles[loop] for loop in lengths}
