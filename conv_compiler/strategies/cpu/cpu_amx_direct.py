# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_amx_direct`: forward passes and data gradients, pixels in the rows of tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.amx_tiles import tile_instruction
from conv_compiler.strategies.cpu.cost_constants import AMX, DIRECT
from conv_compiler.strategies.cpu.cpu_direct import CpuDirect, form_rules
from conv_compiler.strategies.cpu.direct_tiles import Direct
from conv_compiler.strategies.cpu.flattened import flattened
from conv_compiler.strategies.cpu_tilings import DirectTiling
from conv_compiler.targets.host import TILE_REGISTERS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target
    from conv_compiler.targets.host import TileInstruction


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem, row = wgrad.of, tile_instruction(wgrad, target)
    if row is None:
        return f"{target.name} multiplies no tiles of {problem.dtype}"
    sources, results = channels(problem)
    rules = {
        **form_rules(problem),
        "its operands are of one type, and not multiplied in terms": problem.terms is None
        and len(set(wgrad.operand_dtypes)) == 1,
        "its data are what an instruction multiplies, without an op on them": problem.dtype
        == row.dtype
        and not problem.compute
        and problem.operand_ops == (None, None),
        "the channels of a group in the result fill half of a tile": results >= TILE_ROWS // 2,
        "the channels of a group in the source fill half of a tile": sources % row.products == 0
        and row.depth(sources) >= AMX.least_depth_rows,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


@dataclass(frozen=True, kw_only=True)
class TiledDirect(Direct):
    """A problem whose sums are in tile registers."""

    instruction: TileInstruction

    @property
    def lanes(self) -> int:
        """Lanes of a tile."""
        return TILE_ROWS

    @property
    def has_tail(self) -> bool:
        """Whether one register tile has all result channels of a group, and its last tile is not
        full."""
        channels = self.lane_channels
        return channels % TILE_ROWS > 0 and channels <= AMX.most_tail_channels

    def tilings(self) -> Iterator[tuple[float, DirectTiling]]:
        """Register tiles with the cycles of all cores, each with the best of its distributions."""
        column = self.slides[2]
        met = range(min(column.phases, column.outs))  # phases of which a row has a pixel
        shortest = min(-(-(column.outs - phase) // column.phases) for phase in met)
        blocks = -(-self.lane_channels // TILE_ROWS)
        for tiles, vectors in product(range(1, TILE_REGISTERS), repeat=2):
            # The factors of the longer side come and go.
            if tiles * vectors + min(tiles, vectors) + 1 > TILE_REGISTERS:
                continue
            whole = vectors <= blocks if self.overlaps else blocks % vectors == 0
            if vectors != blocks if self.has_tail else not whole:
                continue
            for rows in range(TILE_ROWS, 0, -1):
                if tiles * rows > shortest:
                    continue
                row = self.tile_cycles(tiles, rows, vectors)
                found = self._distributions(row, tiles * rows, vectors, self._cuts(vectors))
                cycles, share, shares = min(found)
                yield (
                    cycles,
                    DirectTiling(
                        product="tiles",
                        columns=tiles * rows,
                        vectors=vectors,
                        lanes=TILE_ROWS,
                        rows_share=share,
                        shares=shares,
                        inner_blocks=self.has_inner_blocks(shares),
                        instruction=self.instruction.name,
                        tile_rows=rows,
                    ),
                )

    def tile_cycles(self, tiles: int, rows: int, vectors: int) -> float:
        """Cycles of a row of result pixels of one block."""
        plane, row, column = self.slides
        sources, _ = channels(self.problem)
        depth = self.instruction.depth(sources)
        steps = sources // (depth * self.instruction.products)
        down = math.prod(sum(map(len, one.window)) / one.phases for one in (plane, row))
        loads = (tiles * rows + vectors * depth) / TILE_ROWS * AMX.load_cycles
        busy = tiles * vectors * rows / TILE_ROWS * AMX.product_cycles
        one = max(loads, busy, AMX.sum_latency_cycles)
        kept = tiles * vectors * rows * AMX.kept_row_cycles
        number = -(-column.units // (tiles * rows))
        begun = column.phases * (DIRECT.tile_cycles + kept)
        return number * (begun + down * sum(map(len, column.window)) * steps * one)


@dataclass(frozen=True, kw_only=True)
class CpuAmxDirect(CpuDirect):
    """A direct kernel whose sums are in tile registers."""

    def rows(self, wgrad: ConvProblem, target: Target) -> dict[int, ConvProblem]:
        """The problem, or all of its flattened ones: rows must be whole tiles."""
        assert isinstance(wgrad, EquivalentWgrad)
        return flattened(wgrad.of)

    def rule(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that a problem breaks; empty where it fits."""
        return misfit(wgrad, target)

    def counted(self, wgrad: ConvProblem, problem: ConvProblem, target: Target) -> Direct:
        """A problem as its cycles are counted."""
        row = tile_instruction(wgrad, target)
        assert row is not None
        return TiledDirect(problem=problem, product="tiles", processor=target.cpu, instruction=row)

    def preference(self, one: DirectTiling) -> tuple[int, ...]:
        """Of tilings that take as many cycles the one with the most pixels."""
        return -one.columns, one.vectors

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Never: tiles are faster than what comes behind."""
        return False


CPU_AMX_DIRECT = CpuAmxDirect(
    name="cpu_amx_direct",
    description="forward and data gradient as a convolution, sums of pixels in tile registers",
    tile="columns of pixels x channels that a thread keeps in tile registers",
)
