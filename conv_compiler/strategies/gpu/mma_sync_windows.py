# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `mma_sync_windows`: weight gradients of small groups by waves of sm_80 and later,
which copy each pixel of the image to LDS once (`passes/mma_sync_windows.py`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.gradient_tiles import PIECE
from conv_compiler.strategies.gpu.cost_constants import GRADIENT_WINDOWS
from conv_compiler.strategies.gpu.mma_sync_windows_cost import (
    lds_bytes,
    predict,
    resident,
    tile_of,
    tiles,
    workgroups,
)
from conv_compiler.strategies.gpu.warp_group_kind import (
    HALF,
    MOST_ELEMENTS,
    PROMISED,
    multiply_its_types,
    written,
)
from conv_compiler.strategies.gpu.wgmma_gemm_cost import SUM_THREADS, sum_slices
from conv_compiler.strategies.kind import Lowering, Promises, StrategyKind
from conv_compiler.strategies.schedule import Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.warp_group_tiling import GradientTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def misfit(problem: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    row, table = problem.layout_row.grouped, GRADIENT_WINDOWS
    rule, multiplied = multiply_its_types(target, by_wave_groups=False)
    types = set(problem.operand_dtypes)
    shapes = problem.input_shape, problem.output_shape
    rules = {
        rule: len(types) == 1 and types <= multiplied and problem.terms is None,
        f"its types have {8 * HALF} bits": all(DTYPES[one].bytes == HALF for one in types),
        "it computes weight gradients": not isinstance(problem, EquivalentWgrad)
        and problem.direction == "bwd_weight",
        "channels lie last in its layouts": (row.input, row.output) == ("N*GC", "N*GK"),
        f"its groups have {table.most_group_channels} channels at most": max(problem.c, problem.k)
        <= table.most_group_channels,
        f"as many groups as divide it, {table.most_joined_groups} at most, have their channels in "
        f"{PIECE}s": joined(problem) > 0,
        f"its tensors have fewer than {MOST_ELEMENTS} elements": max(map(math.prod, shapes))
        < MOST_ELEMENTS,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def joined(problem: ConvProblem) -> int:
    """How many adjacent groups have their channels in whole pieces; 0 where too many would."""
    found = math.lcm(*(PIECE // math.gcd(PIECE, one) for one in (problem.c, problem.k)))
    return found if found <= GRADIENT_WINDOWS.most_joined_groups and problem.g % found == 0 else 0


def merges(problem: ConvProblem, own: int) -> list[int]:
    """How many groups of `own` groups each a workgroup may have: so many that it reads whole
    sectors of memory of each pixel of both tensors, unless these are all."""
    table, groups = GRADIENT_WINDOWS, problem.g // own
    least, most = (size * own for size in sorted((problem.c, problem.k)))
    fitting = max(1, table.most_channels // most)
    return [
        several
        for several in range(1, min(groups, fitting) + 1)
        if groups % several == 0 and (least * several >= table.least_channels or several == groups)
    ]


def boxes(problem: ConvProblem) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Images and output pixels of tiles: of one plane, rows of the table or all, and columns that
    share the image's evenly."""
    table = GRADIENT_WINDOWS
    *outer, last = problem.out_image
    widths = {
        -(-last // -(-last // most)) for most in (table.most_columns, table.most_columns // 2)
    }
    heights = {1}
    if outer:
        heights = {min(rows, outer[-1]) for rows in table.tried_rows}
    for images, rows, columns in itertools.product(table.tried_images, heights, widths):
        count = images * rows * columns
        is_all = images <= problem.n and count <= table.most_pixels
        if is_all and (count >= table.least_pixels or images == max(table.tried_images)):
            yield images, (*[1] * (len(outer) - 1), *([rows] if outer else []), columns)


def tilings(problem: ConvProblem, target: Target) -> Iterator[GradientTiling]:
    """The tiles that a kernel can have."""
    own, table = joined(problem), GRADIENT_WINDOWS
    shares = [*itertools.product(merges(problem, own), table.tried_wave_pieces)]
    (dtype,) = set(problem.operand_dtypes)
    for images, pixels in sorted(set(boxes(problem))):
        for merged, pieces in shares:
            tiling = GradientTiling(
                images=images,
                pixels=pixels,
                joined_groups=own,
                merged_groups=merged,
                wave_pieces=pieces,
                stages=1,
                mma=f"NV_MMA_SYNC_F32_16x8x16_{dtype.upper()}",
            )
            tile = tile_of(problem, tiling)
            if tile.broken_rule or tile.waves > table.most_waves:
                continue
            for stages in (1, 2):
                staged = replace(tiling, stages=stages)
                if lds_bytes(problem, staged) <= target.lds_bytes:
                    yield staged


def splits(problem: ConvProblem, target: Target, tiling: GradientTiling) -> list[int]:
    """Parts that fill the chip's units a whole number of times."""
    slots = target.compute_units * resident(problem, target, tiling)
    total = tiles(problem, tiling)
    found = {1}
    for rounds in GRADIENT_WINDOWS.tried_rounds_times:
        found.add(max(1, min(total, slots * rounds // workgroups(problem, tiling))))
    return sorted(one for one in found if _fits(problem, tiling, one))


def _fits(problem: ConvProblem, tiling: GradientTiling, parts: int) -> bool:
    """Whether numbers of workgroups and of partial sums are within their bits."""
    return (
        parts <= tiles(problem, tiling)
        and parts * workgroups(problem, tiling) < MOST_ELEMENTS
        and parts * math.prod(problem.weight_shape) < MOST_ELEMENTS
    )


def _tiling(one: Strategy) -> GradientTiling:
    assert isinstance(one.tiling, GradientTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class MmaSyncWindowsKind(StrategyKind):
    """Kernels that a pass writes (`passes/mma_sync_windows.py`)."""

    normalise: str = "mma_sync_windows"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tiles that fit, each with its best number of parts, fastest first."""
        if misfit(wgrad, target):
            return ()
        best: dict[GradientTiling, tuple[float, Strategy]] = {}
        for tiling in tilings(wgrad, target):
            one = Strategy(name=self.name, tiling=tiling)
            if tile not in ((), one.tile):
                continue
            several = splits(wgrad, target, tiling)
            if split_k:
                asked = min(split_k, tiles(wgrad, tiling))
                several = [asked] if _fits(wgrad, tiling, asked) else []
            for parts in several:
                found = predict(wgrad, target, tiling, parts), one.with_split_k(parts)
                best[tiling] = min(best.get(tiling, found), found, key=lambda entry: entry[0])
        ranked = sorted(best.values(), key=lambda entry: entry[0])
        return tuple(one for _, one in ranked[: GRADIENT_WINDOWS.most_tilings])

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernels, and the pipeline behind it."""
        from conv_compiler.passes.mma_sync_windows import MmaSyncWindows

        tiling = _tiling(one)
        step = MmaSyncWindows(
            tile_images=tiling.images,
            tile_pixels=tiling.pixels,
            joined_groups=tiling.joined_groups,
            merged_groups=tiling.merged_groups,
            wave_pieces=tiling.wave_pieces,
            parts=one.split_k,
            stages=tiling.stages,
            sum_threads=SUM_THREADS,
            sum_slices=sum_slices(wgrad, target, one.split_k),
        )
        roles = {"contraction": written(target, tile_of(wgrad, tiling).threads)}
        if one.split_k > 1:
            roles["reduction"] = written(target, SUM_THREADS)
        return Lowering(passes=(step,), schedule=Schedule(roles=roles))

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Parts that fill the chip."""
        return splits(wgrad, target, _tiling(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """As many as there are tiles at most."""
        return min(split_k, tiles(wgrad, _tiling(one)))

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by a formula fitted to times on a card."""
        return predict(wgrad, target, _tiling(one), one.split_k)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction, and copies that go to LDS by themselves."""
        return Promises(instruction=PROMISED["mma.sync"], loads_to_lds=True)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks, or that LDS holds no tile."""
        if why := misfit(wgrad, target):
            return why
        return "" if next(tilings(wgrad, target), None) else "LDS holds its windows"

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = _tiling(one)
        return workgroups(wgrad, tiling), -(-tiles(wgrad, tiling) // one.split_k)


MMA_SYNC_WINDOWS = MmaSyncWindowsKind(
    name="mma_sync_windows",
    description="weight gradients of small groups by waves, windows kept in LDS; sm_80 and later",
    tile="images x output pixels of a workgroup's tile, along each axis",
    backends=("cuda",),
)
