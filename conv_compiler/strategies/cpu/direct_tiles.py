# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles and workgroups of direct kernels on the CPU, by counting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from conv_compiler.problem.slides import Slide, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import DIRECT, DISTRIBUTIONS, REGISTER_TILES
from conv_compiler.strategies.cpu.workgroup_shares import load_imbalance
from conv_compiler.strategies.strategy import DirectTiling
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.processors import Processor


def lane_width(channels: int, native: int) -> int:
    """The longest vector, up to a register, that divides so many channels."""
    return math.gcd(channels, native)


@dataclass(frozen=True, kw_only=True)
class Direct:
    """A problem of `fwd` or `bwd_data`, what lies in its lanes, and the CPU."""

    problem: ConvProblem
    product: str
    processor: Processor

    @cached_property
    def slides(self) -> tuple[Slide, Slide]:
        """Those of rows and columns."""
        found = [one.slide(self.problem.direction) for one in spaced(self.problem)]
        row, column = [Slide()] * (2 - len(found)) + found
        return row, column

    @property
    def native(self) -> int:
        """Sums in a register."""
        return self.processor.unit.lanes * 4 // self.problem.accumulator_type.bytes

    @property
    def lane_channels(self) -> int:
        """Channels, or groups, that the lanes are taken from."""
        sources, results = channels(self.problem)
        return {"results": results, "groups": self.problem.g, "sources": sources}[self.product]

    @property
    def lanes(self) -> int:
        """Lanes of a vector."""
        return lane_width(self.lane_channels, self.native)

    def tilings(self) -> Iterator[tuple[float, DirectTiling]]:
        """Every tiling with its cycles of all cores."""
        for vectors in self._vectors():
            most = self._most_columns(vectors)
            for columns in range(1, min(most, max(1, self.slides[1].units)) + 1):
                row = self.row_cycles(columns, vectors)
                for cycles, rows, shares in self._distributions(row, vectors):
                    yield (
                        cycles,
                        DirectTiling(
                            product=self.product,
                            columns=columns,
                            vectors=vectors,
                            lanes=self.lanes,
                            rows_share=rows,
                            shares=shares,
                        ),
                    )

    def _vectors(self) -> tuple[int, ...]:
        """Numbers of vectors that a register tile may have beside one another."""
        if self.product == "sources":
            return (channels(self.problem)[1],)
        count = self.lane_channels // self.lanes
        return tuple(n for n in (1, 2, 3, 4) if count % n == 0)

    def _most_columns(self, vectors: int) -> int:
        """Pixels whose sums registers hold beside a step's factors."""
        unit = self.processor.unit
        taps = len(self.slides[1].window[0]) if self.product == "groups" else 1
        held = vectors * min(taps, unit.registers // 4 // vectors or 1)
        return max(1, (unit.registers - held - 1) // vectors)

    def blocks(self, vectors: int) -> int:
        """Register tiles that hold all channels of a result pixel."""
        if self.product == "sources":
            return self.problem.g
        groups = self.problem.g if self.product == "results" else 1
        return groups * self.lane_channels // (self.lanes * vectors)

    def row_cycles(self, columns: int, vectors: int) -> float:
        """Cycles of a row of result pixels of one block, all its taps inside; the mean of phases."""
        row, column = self.slides
        sources, _ = channels(self.problem)
        steps = {"results": sources, "groups": 1, "sources": sources // self.lanes}[self.product]
        down = sum(map(len, row.window)) / row.phases
        total = 0.0
        for reads in column.window:
            units = -(-column.outs // column.phases)
            tiles = -(-units // columns)
            mean = units / tiles
            if self.product == "groups":
                loads = (mean - 1) * column.step + len(reads)
                step = self._step(mean * len(reads), loads, vectors) / max(1, len(reads))
            else:
                step = self._step(mean, mean / vectors + 1, vectors)
            total += tiles * (down * len(reads) * steps * step + DIRECT.tile_cycles)
        return total

    def _step(self, products: float, loads: float, vectors: int) -> float:
        """Cycles of so many products of one vector and the loads that they need."""
        costs = REGISTER_TILES
        latency = costs.fma_latency_cycles if self.product != "groups" else 0
        return max(
            products * vectors / costs.started_fma_instructions,
            loads * vectors / costs.started_load_instructions,
            latency,
        )

    def _distributions(self, row: float, vectors: int) -> Iterator[tuple[float, int, int]]:
        """(cycles, rows of a workgroup, shares of the channels)."""
        problem, (down, across) = self.problem, self.slides
        sources, results = channels(problem)
        blocks, cores = self.blocks(vectors), self.processor.cores
        wanted = DISTRIBUTIONS.core_workgroups * cores
        weights = math.prod(problem.filter) * problem.g * sources * results
        weight_lines = weights * problem.accumulator_type.bytes / LINE_BYTES
        pixel = problem.g * sources * problem.data_type.bytes
        most = max(1, blocks) * down.outs * problem.n
        for shares in _divisors(blocks if self.product == "results" else 1):
            for rows in _divisors(down.outs):
                workgroups = problem.n * (down.outs // rows) * shares
                if workgroups < min(wanted, most):
                    continue
                read = min(down.size, len(down.reach(-(-rows // down.phases))))
                lines = read * across.size * pixel / LINE_BYTES
                one = (
                    row * rows * blocks / shares
                    + weight_lines / shares * DIRECT.weight_line_cycles
                    + lines * DIRECT.source_line_cycles
                    + DIRECT.workgroup_cycles
                )
                yield one * workgroups * (1 + load_imbalance(workgroups, cores)), rows, shares


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
