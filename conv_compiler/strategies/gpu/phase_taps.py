# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which iterations of the main loop a tile of rows needs, in a strided data gradient.

Its rows are (phases, c) and its outside loops run over the window of all phases. A tile of rows
needs the places that its own phases meet: of a 3x3 filter with stride 2 those are 1, 2, 2 and 4
of 4. `passes/skip_taps.py` and `passes/shorten_loop.py` leave the other ones out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import BATCH_CHUNKS, OUTPUT_LOOPS
from conv_compiler.problem.canonical import EquivalentWgrad, phases
from conv_compiler.problem.phase_taps import TapTable, places_met
from conv_compiler.strategies.gpu.cost_constants import PHASE_TABLES
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES, iterations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling


def tap_table(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> TapTable | None:
    """That of a kernel, or None where each tile meets the whole window or the loop cannot tell.

    The window is what the outside loops run over; a split cuts it, and the tiles of merged groups
    have rows of all phases.
    """
    if split_k > 1 or tiling.merged_groups > 1 or tiling.taps_in_rows or not tiling.mma:
        return None
    if tiling.loads_to_lds:  # its loop has all iterations
        return None
    if not isinstance(problem, EquivalentWgrad) or problem.of.direction != "bwd_data":
        return None
    outside = tuple(loop for loop in tiling.outside if loop != BATCH_CHUNKS)
    if not outside or outside != OUTPUT_LOOPS[-problem.ndim :][: len(outside)]:
        return None
    if set(problem.of.stride) == {1}:
        return None
    return _table(problem, tiling, len(outside))


@lru_cache(maxsize=1024)
def _table(problem: EquivalentWgrad, tiling: GpuTiling, outside: int) -> TapTable | None:
    """`tap_table` where the first so many dimensions of the window are outside loops."""
    of, window = problem.of, problem.outs[:outside]
    places, count = math.prod(window), iterations(problem, tiling, 1)
    steps, uneven = divmod(count, places)
    # A loop of fewer iterations is not pipelined, and none is left to be shorter.
    if uneven or not 2 <= places <= PHASE_TABLES.most_window_pixels or count <= tiling.stages:
        return None
    unrolled = 2 if tiling.stages >= INTERLEAVED_STAGES else 1
    cut = phases(of)
    if count % unrolled or math.prod(one.count for one in cut) > PHASE_TABLES.most_phase_pixels:
        return None
    by_axis = [places_met(of, axis, one) for axis, one in enumerate(cut[:outside])]
    by_phase = [
        frozenset(
            _linear(place, window)
            for place in product(*(one[digit] for one, digit in zip(by_axis, phase, strict=False)))
        )
        for phase in product(*(range(one.count) for one in cut))
    ]
    rounding = _Rounding(places, steps, tiling.stages - 1, unrolled)
    m = tiling.workgroup[0]
    first: list[int] = []
    met: list[tuple[int, ...]] = []
    for tile in range(-(-problem.k // m)):
        of_tile = by_phase[tile * m // of.c : (tile * m + m - 1) // of.c + 1]
        found = rounding.of(frozenset[int]().union(*of_tile))
        if not met or met[-1] != found:
            first.append(tile)
            met.append(found)
    if all(len(found) == places for found in met):
        return None
    longer_last = len(met[-1]) > len(met[0])
    return TapTable(
        places=places,
        steps=steps,
        first=tuple(first),
        met=tuple(met),
        last_first=-(-problem.k // m) - 1 if longer_last else 0,
    )


@dataclass(frozen=True)
class _Rounding:
    """What a software pipeline asks of a list of places.

    The first and the last `depth` iterations stand outside its loop, their numbers written out:
    they are the same for every tile. So a list has the places that they need, and as many less
    than the window that none of those counts twice. Iterations of an unrolled loop are left out by
    whole rounds.
    """

    places: int
    steps: int
    depth: int
    unrolled: int

    def of(self, found: frozenset[int]) -> tuple[int, ...]:
        """The least list that holds these places; the others of it meet zeros."""
        ends = max(1, -(-self.depth // self.steps))
        most = self.places - ends
        wanted = max(len(found), ends)
        while wanted <= most and (self.places - wanted) * self.steps % self.unrolled:
            wanted += 1
        if wanted > most:
            return tuple(range(self.places))
        others = [place for place in range(self.places) if place not in found]
        return tuple(sorted([*found, *others[: wanted - len(found)]]))


def _linear(place: Sequence[int], window: Sequence[int]) -> int:
    """The number of a place of a window."""
    found = 0
    for one, size in zip(place, window, strict=True):
        found = found * size + one
    return found


def mean_iterations(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> float:
    """Main-loop iterations of a workgroup, averaged over the tiles of rows."""
    count = iterations(problem, tiling, split_k)
    table = tap_table(problem, tiling, split_k)
    if table is None:
        return count
    tiles = -(-problem.k // tiling.workgroup[0])
    ends = (*table.first[1:], tiles)
    met = sum(
        len(found) * (end - first)
        for first, found, end in zip(table.first, table.met, ends, strict=True)
    )
    return met * table.steps / tiles
