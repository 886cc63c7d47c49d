"""How a kernel of vectors is dealt out to threads, by what copying its operands costs.

A workgroup copies what it reads for one tile of the summed loops, a chunk, at a time
(`operand_packing_cost.py`) to its thread's stack. The larger the chunk the fewer times sums are
loaded and stored, and the fewer rows of the image are copied for two chunks. Where workgroups would
copy the same again and again, kernels of their own pack the operands of tiles
(`passes/cpu_kernel/packing.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.cpu.cost_constants import (
    APART,
    DIRECT_CYCLES,
    FAR_CYCLES,
    FAR_MOVE_CYCLES,
    FAULT_CYCLES,
    KEPT_BYTES,
    MOVE_CYCLES,
    ONCE_CYCLES,
    PACKED_BYTES,
    PAGE_BYTES,
    PARTIAL_BYTES,
    START_CYCLES,
    SUMS_BYTES,
    costs_of,
)
from conv_compiler.strategies.cpu.operand_packing_cost import Copy, copies, factors_of, lie_ready
from conv_compiler.strategies.cpu.register_tiles import (
    PARTIAL_MOVES,
    WORKGROUPS_PER_CORE,
    divisors,
    in_runs,
    lanes_of,
    loop_sizes,
    waiting,
)
from conv_compiler.strategies.cpu.split_k import deep_loop, part_lengths
from conv_compiler.targets.host import STACK_BYTES, TILE_INSTRUCTIONS
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import CpuTiling
    from conv_compiler.targets.processors import Processor


# Into how many pieces the innermost of the summed loops may be cut, and for how many of the best
# deals that is tried.
PIECES, MOST_RECUT = (2, 4, 8), 12
# How many times more workgroups than wanted are looked at; and again as many times more where the
# copies of none fit.
FINER = 16
# Deals looked at, at most; layers of ResNet-50 have up to 320. Sizes of very many divisors would
# take minutes.
MOST_DEALS = 512


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Trips of each parallel loop a workgroup takes and of each summed loop it copies for, and the
    cycles that copies, partial sums and the order of workgroups take in all; whether
    operands are packed first."""

    share: dict[str, int]
    cache: dict[str, int]
    cycles: float
    packs_first: bool = False


@lru_cache(maxsize=256)
def best_deal(problem: ConvProblem, tiling: CpuTiling, parts: int, processor: Processor) -> Deal:
    """The cheapest deal of gemm_k in `parts` whose copies fit.

    Raises UnsupportedStrategy where those of one register tile and one pixel do not.
    """
    dealing = _Dealing(problem, tiling, parts, processor)
    wanted = -(-WORKGROUPS_PER_CORE * processor.cores // parts)
    enough = min(wanted, math.prod(dealing.counts.values()))
    found: list[Deal] = []
    most = FINER * enough
    while not found:
        if most > FINER * FINER * max(enough, *dealing.counts.values()):
            raise UnsupportedStrategy(
                f"tile {'x'.join(map(str, dealing.tile.values()))}: one pixel of its operands "
                f"takes over {dealing.costs.stack_bytes} bytes; use a smaller one"
            )
        found = list(dealing.deals(enough, most))
        most *= FINER

    def rank(deal: Deal) -> tuple[float, tuple[int, ...]]:
        return deal.cycles, tuple(deal.share.values())

    likely = sorted(found, key=rank)[:MOST_RECUT]
    return min((recut for deal in likely for recut in dealing.recut(deal)), key=rank)


def _thinned(choices: Sequence[Sequence[int]]) -> list[list[int]]:
    """The numbers of ways to cut each loop, every second one left out of the longest of them until
    MOST_DEALS are left; the first and the last stay."""
    kept = [list(one) for one in choices]
    while math.prod(map(len, kept)) > MOST_DEALS:
        del max(kept, key=len)[1:-1:2]
    return kept


class _Dealing:
    """A problem, its register tiles and parts: what every way to deal them out has in common."""

    def __init__(
        self, problem: ConvProblem, tiling: CpuTiling, parts: int, processor: Processor
    ) -> None:
        self.problem, self.parts, self.unit = problem, parts, processor.unit
        self.tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
        self.counts = {p: -(-loop_sizes(problem)[p] // t) for p, t in self.tile.items()}
        self.lengths = part_lengths(problem, tiling, parts)
        self.has_tiles = tiling.instruction in TILE_INSTRUCTIONS
        self.deep, self.step = deep_loop(self.lengths) if self.has_tiles else ("", 1)
        self.costs, self.factors = costs_of(tiling.instruction), factors_of(tiling.instruction)
        self.lanes, self.bytes = lanes_of(self.unit, problem), problem.accumulator_type.bytes
        self.cores = processor.cores
        self.multiplying = problem.flops / 2 / self.lanes * self.costs.multiply
        elements = math.prod(problem.input_shape) + math.prod(problem.output_shape)
        self.data_bytes = problem.data_type.bytes
        self.memory_bytes = elements * self.factors * self.data_bytes
        self.far = next(c for size, c in FAR_CYCLES.items() if self.memory_bytes > size)

    def deals(self, enough: int, most: int) -> Iterator[Deal]:
        """Deals of `enough` workgroups a part or more, each loop cut about `most` ways at most."""
        for dealt in product(*_thinned([divisors(n, most) for n in self.counts.values()])):
            if math.prod(dealt) < enough:
                continue
            shares = dict(zip(self.counts, dealt, strict=True))
            share = {p: self.counts[p] // n * self.tile[p] for p, n in shares.items()}
            for packs_first in (False, True):
                if cache := self._cache(share, packs_first):
                    yield self._deal(share, cache, packs_first)

    def recut(self, deal: Deal) -> Iterator[Deal]:
        """A deal, and what it becomes where the innermost of the summed loops is cut into pieces,
        for copies of more rows, which then have fewer in common with the next."""
        yield deal
        if self.has_tiles or all(self.lengths[p] == n for p, n in deal.cache.items()):
            return
        for pieces in PIECES:
            if cache := self._cache(deal.share, deal.packs_first, pieces):
                yield self._deal(deal.share, cache, deal.packs_first)

    def _deal(self, share: dict[str, int], cache: dict[str, int], packs_first: bool) -> Deal:
        shares = {p: self.counts[p] * self.tile[p] // size for p, size in share.items()}
        cycles = self._cycles(shares, share, cache, packs_first)
        return Deal(share=share, cache=cache, cycles=cycles, packs_first=packs_first)

    def _cycles(
        self,
        shares: Mapping[str, int],
        share: Mapping[str, int],
        cache: Mapping[str, int],
        packs_first: bool,
    ) -> float:
        """All but the multiplying itself, with so many shares of each loop."""
        found = self._copies(share, cache, packs_first)
        chunks = math.prod(-(-self.lengths[p] // cache[p]) for p in self.lengths)
        workgroups = self.parts * math.prod(shares.values())
        sums = math.prod(share.values()) / self.lanes
        near = workgroups * sums * self.lanes * self.bytes <= PARTIAL_BYTES
        each = MOVE_CYCLES if near else FAR_MOVE_CYCLES
        cycles = PARTIAL_MOVES * workgroups * sums * each if self.parts > 1 else 0.0
        packed = 0
        # Loops that image and gradient have not: of their shares the same is copied.
        for without, copy in zip((("k",), (*FILTER_LOOPS, "c")), found, strict=True):
            vectors, times = copy.elements / self.lanes, workgroups
            if copy.is_direct:
                cycles += times * chunks * vectors * DIRECT_CYCLES
                continue
            once = self.factors * (copy.rows * self.costs.row + vectors * self.costs.vector)
            once += vectors * self.costs.line
            if not self.has_tiles and copy.run * self.data_bytes < PAGE_BYTES:
                once += copy.elements * self.factors * self.data_bytes / LINE_BYTES * self.far
            if packs_first:
                cycles += workgroups * chunks * vectors * self.costs.read
                once += vectors * self.costs.write
                times //= math.prod(shares.get(p, 1) for p in without)
                packed += times * chunks * copy.elements * self.bytes
                once *= 1 + waiting(times * chunks, self.cores)
                cycles += START_CYCLES
            cycles += times * chunks * once
        if packed > KEPT_BYTES:
            cycles += packed / PAGE_BYTES * FAULT_CYCLES
        on_stack = 0 if packs_first else sum(copy.on_stack for copy in found)
        cycles += workgroups * chunks * self._sums(share, on_stack, chunks)
        tiles = math.prod(self.counts.values())
        cycles += tiles * self.problem.gemm_k / list(cache.values())[-1] * self.costs.loop
        apart = self.cores > 1 and not in_runs(workgroups, self.cores)
        if apart and math.prod(n for p, n in shares.items() if p != "g") > 1:
            cycles += max(0.0, APART * self.multiplying - ONCE_CYCLES * self.memory_bytes)
        return cycles + waiting(workgroups, self.cores) * (self.multiplying + cycles)

    def _sums(self, share: Mapping[str, int], elements: int, chunks: int) -> float:
        """What a workgroup's sums take in a chunk, with so many elements of copies on the stack."""
        costs, sums = self.costs, math.prod(share.values())
        starts = math.prod(size // self.tile[p] for p, size in share.items())
        if self.has_tiles:
            near = (elements + sums) * self.bytes <= STACK_BYTES or self._row < PAGE_BYTES
        else:
            near = sums * self.bytes <= SUMS_BYTES
        each = costs.sums if near else costs.far_sums
        waits = not self.has_tiles or chunks > 1
        return starts * costs.tile + (sums / self.lanes * each if waits else 0)

    @property
    def _row(self) -> int:
        """Bytes from row to row of the sums in the result: taps and lanes lie inside."""
        inner = [p for p in self.tile if p in FILTER_LOOPS] + [list(self.tile)[-1]]
        return math.prod(self.counts[p] * self.tile[p] for p in inner) * self.bytes

    def _copies(
        self, share: Mapping[str, int], cache: Mapping[str, int], packs_first: bool
    ) -> tuple[Copy, Copy]:
        direct = (False, False)
        if self.factors == 1 and not packs_first:
            direct = lie_ready(self.problem, self.tile, share, cache, self.lengths, self.parts)
        return copies(self.problem, share, cache, self.unit, self.deep, self.step, direct)

    def _cache(
        self, share: Mapping[str, int], packs_first: bool, pieces: int = 1
    ) -> dict[str, int] | None:
        """Trips of each summed loop whose copies fit, innermost loops filled first, of loop `deep`
        whole steps, of the innermost one a piece at most; None where those of one trip do not."""
        room = PACKED_BYTES if packs_first else self.costs.stack_bytes
        units = {p: self.step if p == self.deep else 1 for p in self.lengths}
        inner, found = list(self.lengths)[-1], dict(units)

        def fits(tiles: Mapping[str, int]) -> bool:
            found = self._copies(share, tiles, packs_first)
            return sum(copy.on_stack for copy in found) * self.bytes <= room

        if not fits(found):
            return None
        for loop, length in reversed(self.lengths.items()):
            one = units[loop]
            count = length // one
            allowed = range(1, (-(-count // pieces) if loop == inner else count) + 1)
            most = bisect_right(allowed, 0, key=lambda t: not fits({**found, loop: t * one}))
            found[loop] = -(-count // -(-count // most)) * one  # even tiles
            if most < len(allowed):
                break
        return found
