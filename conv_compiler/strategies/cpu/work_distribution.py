# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the work of a kernel of vectors is distributed over threads, by what copying operands costs.

A workgroup copies what it reads for one chunk, a tile of the summed loops, to its thread's stack
(`operand_packing_cost.py`). With larger chunks sums are loaded and stored less often, and fewer
rows of the image are copied for two chunks. Where workgroups would copy the same again and again,
kernels of their own pack the operands first (`passes/cpu_kernel/packing.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.cpu.cost_constants import DISTRIBUTIONS, MEMORY
from conv_compiler.strategies.cpu.distribution_cost import DistributionCost
from conv_compiler.strategies.cpu.operand_packing_cost import Chunk
from conv_compiler.strategies.cpu.workgroup_shares import divisors

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.cpu_tilings import CpuTiling
    from conv_compiler.targets.processors import Processor


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One way to distribute the work.

    `share` are the iterations of each parallel loop that a workgroup takes, `cache` those of each
    summed loop that it copies for at once. `cycles` are those of all cores, but for multiplying.
    `packs_first` tells whether kernels of their own pack the operands.
    """

    share: dict[str, int]
    cache: dict[str, int]
    cycles: float
    packs_first: bool = False


@lru_cache(maxsize=256)
def best_distribution(
    problem: ConvProblem, tiling: CpuTiling, split_k: int, processor: Processor
) -> Distribution:
    """The cheapest distribution whose copies fit.

    Raises UnsupportedStrategy where those of one register tile and one pixel do not.
    """
    ways = Distributions(DistributionCost(problem, tiling, split_k, processor))
    counts = ways.cost.counts
    wanted = -(-DISTRIBUTIONS.core_workgroups * processor.cores // split_k)
    enough = min(wanted, math.prod(counts.values()))
    finer = DISTRIBUTIONS.finer_times
    found: list[Distribution] = []
    most = finer * enough
    while not found:
        if most > finer * finer * max(enough, *counts.values()):
            raise UnsupportedStrategy(
                f"tile {'x'.join(map(str, ways.cost.tile.values()))}: one pixel of its operands "
                f"takes over {ways.cost.costs.stack_bytes} bytes; use a smaller one"
            )
        found = list(ways.of_at_least(enough, most))
        most *= finer

    def rank(one: Distribution) -> tuple[float, tuple[int, ...]]:
        return one.cycles, tuple(one.share.values())

    likely = sorted(found, key=rank)[: DISTRIBUTIONS.most_recut_distributions]
    return min((recut for one in likely for recut in ways.recut(one)), key=rank)


def _thinned(choices: Sequence[Sequence[int]]) -> list[list[int]]:
    """The ways to cut each loop, thinned out until few enough combinations are left.

    Every second one of the longest list goes; the first and the last stay.
    """
    kept = [list(one) for one in choices]
    while math.prod(map(len, kept)) > DISTRIBUTIONS.most_distributions:
        del max(kept, key=len)[1:-1:2]
    return kept


class Distributions:
    """The ways to distribute the work of a problem, a tiling and a split-K factor."""

    def __init__(self, cost: DistributionCost) -> None:
        self.cost = cost

    def of_at_least(self, enough: int, most: int) -> Iterator[Distribution]:
        """Those of `enough` workgroups a part or more, each loop cut about `most` ways at most."""
        counts, tile = self.cost.counts, self.cost.tile
        for numbers in product(*_thinned([divisors(n, most) for n in counts.values()])):
            if math.prod(numbers) < enough:
                continue
            shares = dict(zip(counts, numbers, strict=True))
            share = {p: counts[p] // n * tile[p] for p, n in shares.items()}
            for packs_first in (False, True):
                if cache := self._cache(share, packs_first):
                    yield self._of(share, cache, packs_first)

    def recut(self, one: Distribution) -> Iterator[Distribution]:
        """A distribution, and the same with the innermost summed loop cut into parts.

        That leaves room for copies of more rows, which have fewer in common with the next.
        """
        yield one
        lengths = self.cost.lengths
        if self.cost.has_amx or all(lengths[p] == n for p, n in one.cache.items()):
            return
        for parts in DISTRIBUTIONS.recut_parts:
            if cache := self._cache(one.share, one.packs_first, parts):
                yield self._of(one.share, cache, one.packs_first)

    def _of(self, share: dict[str, int], cache: dict[str, int], packs_first: bool) -> Distribution:
        cycles = self.cost.cycles(Chunk(share, cache), packs_first)
        return Distribution(share=share, cache=cache, cycles=cycles, packs_first=packs_first)

    def _cache(
        self, share: Mapping[str, int], packs_first: bool, parts: int = 1
    ) -> dict[str, int] | None:
        """Iterations of each summed loop whose copies fit, innermost loops filled first.

        The deep loop has whole steps; the innermost one is cut into `parts` at least. None where
        the copies of one iteration do not fit.
        """
        cost, lengths = self.cost, self.cost.lengths
        room = MEMORY.packed_bytes if packs_first else cost.costs.stack_bytes
        units = {p: cost.deep.step if p == cost.deep.loop else 1 for p in lengths}
        inner, found = list(lengths)[-1], dict(units)

        def fits(tiles: Mapping[str, int]) -> bool:
            both = cost.copies(Chunk(share, tiles), packs_first)
            return sum(copy.on_stack for copy in both) * cost.bytes <= room

        if not fits(found):
            return None
        for loop, length in reversed(lengths.items()):
            unit = units[loop]
            count = length // unit
            allowed = range(1, (-(-count // parts) if loop == inner else count) + 1)

            def overflows(tile: int, loop: str = loop, unit: int = unit) -> bool:
                return not fits({**found, loop: tile * unit})

            most = bisect_right(allowed, 0, key=overflows)
            found[loop] = -(-count // -(-count // most)) * unit  # even tiles
            if most < len(allowed):
                break
        return found
