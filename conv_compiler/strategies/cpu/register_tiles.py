# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which register tile a CPU contraction gets: the one that takes the fewest cycles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS, summed_loops
from conv_compiler.strategies.cpu.cost_constants import (
    IN_MEMORY,
    REGISTER_TILES,
    Copying,
)
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.targets import find_target
from conv_compiler.targets.host import VectorUnit
from conv_compiler.targets.limits import DEINTERLEAVED_CHANNELS, LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

# No CPU has instructions for 8-bit floats: in this one is as good as another.
CPU = find_target("cpu")


class RegisterTile(NamedTuple):
    """A register tile by loop, the cycles of the whole problem with it, and its sums in vectors."""

    tile: dict[str, int]
    cycles: float
    sums: int


class Tiled(NamedTuple):
    """A tiling and its modelled cycles."""

    cycles: float
    tiling: CpuTiling


@lru_cache(maxsize=256)
def loop_sizes(problem: ConvProblem) -> Mapping[str, int]:
    """Iterations of each of the contraction's loops, unit ones included."""
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
    """(parallel, summed) loops of more than one iteration: channels, then taps, then the lanes."""
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
) -> Tiled | None:
    """The cheapest tiling with one of g, k, c in vector lanes.

    None where that loop has one iteration, where nothing is summed, or where the `register_tile`
    asked for does not fit. `unit` is the CPU's; `copying` says who copies operands.
    """
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
    tiling = CpuTiling(loops=(*parallel, *summed), vector_parallel=(*tile, *(0 for _ in summed)))
    return Tiled(best.cycles, tiling)


def lanes_of(unit: VectorUnit, problem: ConvProblem) -> int:
    """Sums in a register."""
    return unit.lanes * 4 // problem.accumulator_type.bytes


def _register_tiles(
    problem: ConvProblem, lanes: str, unit: VectorUnit, copying: Copying
) -> Iterator[RegisterTile]:
    """Every register tile that fits the register file."""
    sizes = loop_sizes(problem)
    taps = FILTER_LOOPS[-problem.ndim :]
    widest = 1 << (sizes[lanes] - 1).bit_length()
    least = copying.lane_elements[0]
    widths = [t for t in copying.lane_elements if t <= max(widest, least)]
    for rows in _tile_rows(problem, lanes):
        if (tile_rows := math.prod(rows)) > unit.most_sums:
            continue
        *window, k, c = rows
        # Rows that lie apart in memory come as shuffles of vectors loaded around them.
        if lanes == "k" and math.prod(window) > 1 and c < sizes["c"]:
            continue
        for width in widths:
            vectors = -(-width // lanes_of(unit, problem))
            tile = {"g": 1, "k": k, "c": c, **dict(zip(taps, window, strict=True)), lanes: width}
            factors = _Factors(
                sums=tile_rows * vectors,
                image=math.prod(window) * c * (vectors if lanes in "gc" else 1),
                gradient=k * (vectors if lanes in "gk" else 1),
            )
            if not factors.fit(lanes, unit):
                continue
            line = -(-width * problem.accumulator_type.bytes // LINE_BYTES)
            lines = (line * c if lanes in "gc" else 1) + (line * k if lanes in "gk" else 1)
            tiles = math.prod(-(-sizes[p] // t) for p, t in tile.items())
            busy = factors.busy_cycles(lanes, lines)
            cycles = tiles * problem.gemm_k * busy + _copy_cycles(problem, lanes, tile, copying)
            yield RegisterTile(tile, cycles, factors.sums)


def _tile_rows(problem: ConvProblem, lanes: str) -> Iterator[tuple[int, ...]]:
    """The rows of register tiles that are tried: along each tap, along k and along c."""
    sizes = loop_sizes(problem)
    # A dilated tap would step over pixels inside the tile.
    tap_tiles = [
        (1, f) if 1 < f <= REGISTER_TILES.most_taps and d == 1 else (1,)
        for f, d in zip(problem.filter, problem.dilation, strict=True)
    ]
    rows = [
        [t for t in REGISTER_TILES.tried_rows if t <= sizes[p]] if p != lanes else [1]
        for p in ("k", "c")
    ]
    return product(*tap_tiles, *rows)


class _Factors(NamedTuple):
    """Vectors of a register tile: sums, and factors of the image and of the gradient."""

    sums: int
    image: int
    gradient: int

    def fit(self, lanes: str, unit: VectorUnit) -> bool:
        """Whether registers hold the sums, and the factors that several sums use.

        Broadcast factors come and go.
        """
        held = {
            "c": self.image,
            "k": self.gradient,
            "g": min(self.image, self.gradient) + 1,
        }[lanes]
        return self.sums <= unit.most_sums and self.sums + held <= unit.most_vectors

    def busy_cycles(self, lanes: str, lines: int) -> float:
        """Cycles of a step: those of the busiest of multiply-adds, loads, broadcasts, the lines
        from the second cache, and the latency of a sum."""
        broadcasts = {"c": self.gradient, "k": self.image, "g": 0}[lanes]
        return max(
            self.sums / REGISTER_TILES.started_fma_instructions,
            (self.image + self.gradient) / REGISTER_TILES.started_load_instructions,
            broadcasts / REGISTER_TILES.started_broadcast_instructions,
            lines * REGISTER_TILES.line_cycles,
            REGISTER_TILES.fma_latency_cycles,
        )


def _copy_cycles(problem: ConvProblem, lanes: str, tile: dict[str, int], copying: Copying) -> float:
    """Cycles to copy operands that must be copied because of the tile or the lanes."""
    sizes = loop_sizes(problem)
    row = problem.layout_row.grouped
    total = 0.0
    for letters, loops, shape in (
        (row.input, "gc", problem.input_shape),
        (row.output, "gk", problem.output_shape),
    ):
        inner, each = letters.lower()[-1], 0.0
        if any(sizes[p] % tile[p] for p in loops):
            each = copying.padded_cycles
        if lanes in loops and not innermost(letters, lanes, sizes):
            is_short = inner != "*" and sizes[inner] not in DEINTERLEAVED_CHANNELS
            each = max(each, copying.short_cycles if is_short else copying.transposed_cycles)
        total += math.prod(shape) * each
    return total


def lies_ready(problem: ConvProblem, tiling: CpuTiling) -> bool:
    """Whether neither operand must be padded or transposed in memory for a tiling."""
    tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    whole = dict.fromkeys(loop_sizes(problem), 1) | tile
    padded = any((*problem.pad_low, *problem.pad_high))
    return not padded and not _copy_cycles(problem, list(tile)[-1], whole, IN_MEMORY)


def innermost(letters: str, lanes: str, sizes: Mapping[str, int]) -> bool:
    """Whether nothing of more than one iteration lies inside the lanes' axis."""
    inner = letters.lower()[letters.lower().index(lanes) + 1 :]
    return all(letter != "*" and sizes[letter] == 1 for letter in inner)
