# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_amx_direct`: forward passes and data gradients, pixels in the rows of tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from conv_compiler.problem.batching import divisors
from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.amx_tiles import tile_instruction
from conv_compiler.strategies.cpu.cost_constants import AMX, DIRECT
from conv_compiler.strategies.cpu.cpu_direct import CpuDirect, direct_tiling, form_rules
from conv_compiler.strategies.cpu.direct_tiles import Direct
from conv_compiler.strategies.strategy import DirectTiling, Strategy
from conv_compiler.targets.host import TILE_REGISTERS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
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
        f"the channels of a group in the result are a multiple of {TILE_ROWS}, or "
        f"{AMX.most_tail_channels} at most": results % TILE_ROWS == 0
        or TILE_ROWS // 2 <= results <= AMX.most_tail_channels,
        "the channels of a group in the source fill half of a tile": sources % row.products == 0
        and row.depth(sources) >= AMX.least_depth_rows,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def flattened(problem: ConvProblem) -> dict[int, ConvProblem]:
    """The problem, or where every pixel is read by itself and in its place, its pixels as rows: by
    the length of the rows, 0 for those of the image."""
    whole, pads = (1,) * problem.ndim, (*problem.pad_low, *problem.pad_high)
    if problem.filter != whole or problem.stride != whole or any(pads):
        return {0: problem}
    pixels = problem.n * math.prod(problem.image)
    return {
        length: replace(
            problem,
            n=1,
            image=(pixels // length, length),
            filter=(1, 1),
            stride=(1, 1),
            dilation=(1, 1),
            pad_low=(0, 0),
            pad_high=(0, 0),
            layout=problem.layout_row.spell(2),
        )
        for length in divisors(pixels)
        if length <= DIRECT.most_row_pixels
    }


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
        """Never: channels fill tiles."""
        return False

    def tilings(self) -> Iterator[tuple[float, DirectTiling]]:
        """Register tiles with the cycles of all cores, each with the best of its distributions."""
        column = self.slides[2]
        met = range(min(column.phases, column.outs))  # phases of which a row has a pixel
        shortest = min(-(-(column.outs - phase) // column.phases) for phase in met)
        blocks = -(-self.lane_channels // TILE_ROWS)
        has_tail = self.lane_channels % TILE_ROWS > 0  # in which case one tile has all channels
        for tiles, vectors in product(range(1, TILE_REGISTERS), repeat=2):
            # The factors of the longer side come and go.
            if tiles * vectors + min(tiles, vectors) + 1 > TILE_REGISTERS:
                continue
            if vectors != blocks if has_tail else blocks % vectors:
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

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The tiling that takes the fewest cycles."""
        if split_k > 1 or misfit(wgrad, target):
            return ()
        assert isinstance(wgrad, EquivalentWgrad)
        row = tile_instruction(wgrad, target)
        assert row is not None
        found = [
            (cycles, -one.columns, one.vectors, replace(one, row_pixels=length))
            for length, problem in flattened(wgrad.of).items()
            for cycles, one in TiledDirect(
                problem=problem, product="tiles", processor=target.cpu, instruction=row
            ).tilings()
            if tile in ((), (one.columns, one.vectors * one.lanes))
        ]
        best = sorted(found, key=lambda entry: entry[:3])[:1]
        return tuple(Strategy(name=self.name, tiling=tiling, split_k=1) for *_, tiling in best)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Never: tiles are faster than what comes behind."""
        return False

    def sizes(self, problem: ConvProblem, one: Strategy) -> dict[str, Any]:
        """Those of the flattened problem whose rows the tiling is of."""
        flat = sizes_of(flattened(problem)[direct_tiling(one).row_pixels])
        return super().sizes(problem, one) | flat

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target)


CPU_AMX_DIRECT = CpuAmxDirect(
    name="cpu_amx_direct",
    description="forward and data gradient as a convolution, sums of pixels in tile registers",
    tile="columns of pixels x channels that a thread keeps in tile registers",
)
