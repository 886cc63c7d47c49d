# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles and workgroups of direct kernels on the CPU, by counting."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from conv_compiler.problem.batching import divisors
from conv_compiler.problem.slides import even_sizes
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import (
    DIRECT,
    DISTRIBUTIONS,
    NEIGHBOURS,
    REGISTER_TILES,
)
from conv_compiler.strategies.cpu.direct_lanes import DirectLanes
from conv_compiler.strategies.cpu.workgroup_shares import in_runs, load_imbalance
from conv_compiler.strategies.cpu_tilings import DirectTiling
from conv_compiler.targets.limits import LINE_BYTES, UNROLLED


@dataclass(frozen=True, kw_only=True)
class Direct(DirectLanes):
    """Register tiles of a problem, and their cycles."""

    def tilings(self) -> Iterator[tuple[float, DirectTiling]]:
        """Register tiles with the cycles of all cores, each with the best of its distributions.

        That is one of the most pieces, of those that take hardly longer than the fastest: the more
        pieces, the less a core waits for one that something else keeps busy.
        """
        for vectors in self._vectors():
            cuts = self._cuts(vectors)
            for columns in range(1, min(self._most_columns(vectors), self.slides[2].units) + 1):
                row = self.row_cycles(columns, vectors)
                found = list(self._distributions(row, columns, vectors, cuts))
                most = min(found)[0] * (1 + DIRECT.pieces_share)
                good = [one for one in found if one[0] <= most]
                cycles, rows, shares = max(good, key=self._pieces)
                yield (
                    cycles,
                    DirectTiling(
                        product=self.product,
                        columns=columns,
                        vectors=vectors,
                        lanes=self.lanes,
                        rows_share=rows,
                        shares=shares,
                        inner_blocks=self.has_inner_blocks(shares),
                        instruction=self.instruction_name,
                    ),
                )

    def _pieces(self, found: tuple[float, int, int]) -> tuple[float, float]:
        """Pieces in which workers take the workgroups of a distribution, fewest cycles then."""
        cycles, rows, shares = found
        workgroups = self.planes * (self.slides[1].outs // rows) * shares
        run = NEIGHBOURS.run_workgroups if in_runs(workgroups, self.processor.cores) else 1
        return workgroups // run, -cycles

    def _vectors(self) -> list[int]:
        """Numbers of vectors that a register tile may have beside one another."""
        if self.product == "sources":
            return [channels(self.problem)[1]]
        if self.has_tail:
            return [-(-self.lane_channels // self.lanes)]
        count, most = self.lane_channels // self.lanes, self.processor.unit.most_sums
        several = range(1, count + 1) if self.overlaps else divisors(count)
        return [n for n in several if n <= (most if self.product == "groups" else 4)]

    def _most_columns(self, vectors: int) -> int:
        """Pixels whose sums registers hold beside a step's factors.

        Weights of `groups` may come from memory with each product.
        """
        unit = self.processor.unit
        if self.product == "groups":
            return max(1, unit.most_sums // vectors)
        if self.has_results and self._is_written_out:
            return max(1, int(unit.registers * DIRECT.written_out_share) // vectors)
        return max(1, (unit.registers - vectors - 1) // vectors)

    @property
    def _is_written_out(self) -> bool:
        """Whether all products of several taps stand in a row, without a loop over channels."""
        sources, _ = channels(self.problem)
        return sources // self.neighbours <= UNROLLED and max(map(len, self.slides[2].window)) > 1

    def blocks(self, vectors: int) -> int:
        """Register tiles that hold all channels of a result pixel."""
        if self.product == "sources":
            return self.problem.g
        groups = 1 if self.product == "groups" else self.problem.g
        return groups * -(-self.lane_channels // (self.lanes * vectors))

    def row_cycles(self, columns: int, vectors: int) -> float:
        """Cycles of a row of result pixels of one block, all its taps inside."""
        plane, row, column = self.slides
        sources, _ = channels(self.problem)
        several = {"groups": sources, "sources": self.lanes}
        deep = several.get(self.product, self.neighbours)
        down = math.prod(sum(map(len, one.window)) / one.phases for one in (plane, row))
        begin = DIRECT.row_cycles + vectors * DIRECT.vector_cycles
        total = 0.0
        for reads in column.window:
            for units, number in even_sizes(-(-column.outs // column.phases), columns):
                tile = DIRECT.tile_cycles + down * begin
                if self.product == "groups":
                    loads = (units - 1) * column.step + 2 * len(reads)
                    tile += down * vectors * self._step(units * len(reads), loads, 0, 0)
                else:
                    lines = vectors * self.lanes * self.problem.accumulator_type.bytes / LINE_BYTES
                    loads = units + vectors
                    if self.product == "sources":
                        lines = 0
                    waits = lines * REGISTER_TILES.line_cycles
                    waits += self.missed_lines(units) * DIRECT.missed_line_cycles
                    one = self._step(
                        units * vectors, loads, waits, REGISTER_TILES.fma_latency_cycles
                    )
                    tile += down * -(-len(reads) * sources // deep) * one
                total += number * tile
        return total

    def missed_lines(self, units: int) -> int:
        """Lines of so many adjacent units that the first cache loses between two source channels.

        Pixels whose distance is a power of two lie in few of its sets. More lines than a set has
        places for evict one another; the first few beyond that evict as many again.
        """
        if not self.has_results:
            return 0
        sources, _ = channels(self.problem)
        step = self.slides[2].step * self.problem.g * sources * self.element_bytes
        caches = self.processor.caches
        lines = {unit * step // LINE_BYTES for unit in range(units)}
        sets = Counter(line % caches.first_sets for line in lines)
        return sum(
            min(held, 2 * (held - caches.first_ways))
            for held in sets.values()
            if held > caches.first_ways
        )

    @property
    def pixel_cycles(self) -> float:
        """The least cycles of a pixel of a row, of all channels."""
        return min(
            self.row_cycles(min(self._most_columns(vectors), self.slides[2].units), vectors)
            * self.blocks(vectors)
            / self.slides[2].outs
            for vectors in self._vectors()
        )

    def _step(self, products: float, loads: float, waits: float, latency: float) -> float:
        """Cycles of so many products of vectors, loads, and cycles of the second cache."""
        costs = REGISTER_TILES
        parts = (
            products / costs.started_fma_instructions,
            loads / costs.started_load_instructions,
            waits,
        )
        most = max(parts)
        return max(most, latency) + DIRECT.shown_share * (sum(parts) - most)

    def _distributions(
        self, row: float, columns: int, vectors: int, cuts: list[tuple[int, int, int]]
    ) -> Iterator[tuple[float, int, int]]:
        """(cycles, rows of a workgroup, shares of the channels)."""
        problem, (plane, down, across) = self.problem, self.slides
        sources, results = channels(problem)
        blocks, cores = self.blocks(vectors), self.processor.cores
        weight_cycles = self.weight_bytes / LINE_BYTES * DIRECT.weight_line_cycles
        pixel = problem.g * sources * problem.data_type.bytes
        made = across.outs * problem.g * results * problem.result_type.bytes
        planes = min(plane.size, plane.read(1)) * across.size * pixel
        read = {rows: min(down.size, down.read(-(-rows // down.phases))) for _, rows, _ in cuts}
        line = self._line_cycles(columns)
        for shares, rows, workgroups in cuts:
            source = read[rows] * planes
            lines = (source + rows * made / shares) / LINE_BYTES
            one = (
                row * rows * blocks / shares
                + weight_cycles / shares
                + lines * line
                + self._again(source, shares, blocks // shares)
                + DIRECT.workgroup_cycles
            )
            yield one * workgroups * (1 + load_imbalance(workgroups, cores)), rows, shares

    @property
    def near_bytes(self) -> float:
        """What a workgroup may have of the second cache."""
        return self.processor.caches.second_bytes * DIRECT.second_cache_share

    @property
    def weight_bytes(self) -> int:
        """Bytes of the packed weights."""
        sources, results = channels(self.problem)
        count = math.prod(self.problem.filter) * self.problem.g * sources * results
        return count * self.element_bytes

    def has_inner_blocks(self, shares: int) -> bool:
        """Whether a workgroup computes all channels of some pixels before the next ones: where the
        second cache holds its weights, which it reads again for each register tile."""
        return self.product == "groups" or (
            self.has_results and self.weight_bytes <= shares * self.near_bytes
        )

    def _again(self, source: float, shares: int, blocks: int) -> float:
        """Cycles to read the source of a workgroup, in bytes, once more for each block of channels
        but the first."""
        if not self.has_results or source <= self.near_bytes:
            return 0.0
        if self.has_inner_blocks(shares):
            return 0.0
        return (blocks - 1) * source / LINE_BYTES * DIRECT.again_line_cycles

    def _cuts(self, vectors: int) -> list[tuple[int, int, int]]:
        """(shares of the channels, rows, workgroups): enough workgroups for all cores, and no
        needless thousands, or the fewest where there are more in any case."""
        planes, down, cores = self.planes, self.slides[1].outs, self.processor.cores
        whole = self.product in ("groups", "sources") or self.overlaps
        cut = 1 if whole else self.blocks(vectors)
        least = min(DISTRIBUTIONS.core_workgroups * cores, cut * down * planes)
        most = DIRECT.most_core_workgroups * cores
        counts = divisors(down)  # the workgroups that a plane's rows are shared among
        few: list[tuple[int, int, int]] = []
        many: list[tuple[int, int, int]] = []
        for shares in divisors(cut):
            each = planes * shares
            first = bisect_left(counts, -(-least // each))
            last = bisect_right(counts, most // each, lo=first)
            few += [(shares, down // count, count * each) for count in counts[first:last]]
            many += [(shares, down // count, count * each) for count in counts[last : last + 1]]
        few.sort(key=lambda one: one[2])
        few = few[:: -(-len(few) // DIRECT.tried_distributions) or 1]
        return few or [min(many, key=lambda one: one[2])]

    def _line_cycles(self, columns: int) -> float:
        """Cycles for a line of the source or the result."""
        problem = self.problem
        data = math.prod(problem.input_shape) + math.prod(problem.output_shape)
        if data * problem.data_type.bytes <= DIRECT.near_data_bytes:
            return DIRECT.near_line_cycles
        if columns == 1 or self.product != "groups":
            return DIRECT.far_line_cycles
        is_wide = self.processor.unit.lanes * 4 == LINE_BYTES
        return DIRECT.wide_apart_line_cycles if is_wide else DIRECT.apart_line_cycles
