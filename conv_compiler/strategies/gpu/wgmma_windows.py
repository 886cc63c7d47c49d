# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `wgmma_windows`: forward passes and data gradients of small groups by Hopper's wave
groups, which copy each source pixel to LDS once (`passes/wgmma_windows.py`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.weight_steps import channels
from conv_compiler.problem.window_tiles import MOST_CHANNELS, PIECE
from conv_compiler.strategies.gpu.cost_constants import WINDOWS
from conv_compiler.strategies.gpu.warp_group_kind import (
    MOST_ELEMENTS,
    MOST_WORKGROUPS,
    convolution_of,
    written,
)
from conv_compiler.strategies.gpu.wgmma_windows_cost import (
    lds_bytes,
    predict,
    resident,
    tile_of,
    tiles,
    workgroups,
)
from conv_compiler.strategies.kind import Lowering, OnePart, Promises
from conv_compiler.strategies.schedule import Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.warp_group_tiling import WindowTiling

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem = wgrad.of
    row = problem.layout_row.grouped
    sources, results = channels(problem)
    shapes = problem.input_shape, problem.output_shape, problem.weight_shape
    rules = {
        "wave groups of its chip multiply its types": problem.terms is None
        and set(problem.operand_dtypes) == {problem.dtype}
        and problem.dtype in target.wgmma,
        "its operands have no ops": not any(problem.operand_ops),
        "channels lie last in its layouts": (row.input, row.output) == ("N*GC", "N*GK")
        and row.weight.endswith("C"),
        f"its groups have {WINDOWS.most_channels} source channels at most": sources
        <= WINDOWS.most_channels,
        f"its channels of a group come in {PIECE}s": sources % PIECE == results % PIECE == 0,
        f"its tensors have fewer than {MOST_ELEMENTS} elements": max(map(math.prod, shapes))
        < MOST_ELEMENTS,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def merges(problem: ConvProblem) -> list[int]:
    """How many adjacent groups a workgroup may have, as far as that divides the groups.

    They have MOST_CHANNELS source channels at most. Of both tensors they have so many that whole
    sectors of memory are read and stored.
    """
    sources, results = channels(problem)
    return [
        several
        for several in WINDOWS.tried_groups
        if sources * several <= MOST_CHANNELS
        and min(sources, results) * several >= WINDOWS.least_channels
        and problem.g % several == 0
    ]


def tilings(problem: ConvProblem, target: Target) -> Iterator[WindowTiling]:
    """The tiles of the table that a kernel can have."""
    _, results = channels(problem)
    for merged in merges(problem):
        for images, rows, across, patch_rows, wave_groups in WINDOWS.tried_tiles:
            tiling = WindowTiling(
                images=images,
                rows=rows,
                columns=across,
                patch_rows=patch_rows,
                wave_groups=wave_groups,
                merged_groups=merged,
                workgroups=1,
                mma=f"WGMMA_F32_64x{results}x16_{problem.dtype.upper()}",
            )
            if tile_of(problem, tiling).broken_rule:
                continue
            for shared in _workgroups(problem, target, tiling):
                if _fits(problem, target, shared):
                    yield shared


def _workgroups(
    problem: ConvProblem, target: Target, tiling: WindowTiling
) -> Iterator[WindowTiling]:
    """A tiling with as many workgroups as there are tiles, and with as many as run at a time."""
    total = tiles(problem, tiling)
    yield replace(tiling, workgroups=total)
    most = resident(problem, target, tiling) * target.compute_units
    at_once = most * tiling.merged_groups // problem.g
    if 1 <= at_once < total:
        yield replace(tiling, workgroups=at_once)


def _fits(problem: ConvProblem, target: Target, tiling: WindowTiling) -> bool:
    """Whether LDS holds a tile, and workgroups are within their bits."""
    return (
        lds_bytes(problem, tiling) <= target.lds_bytes
        and problem.g // tiling.merged_groups <= MOST_WORKGROUPS
    )


def _tiling(one: Strategy) -> WindowTiling:
    assert isinstance(one.tiling, WindowTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class WgmmaWindowsKind(OnePart):
    """A kernel that a pass writes (`passes/wgmma_windows.py`).

    One part: a workgroup has all taps and channels of its pixels.
    """

    normalise: str = "wgmma_windows"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tiles of the table that fit, fastest first."""
        if misfit(wgrad, target):
            return ()
        problem = convolution_of(wgrad)
        found = [one for one in tilings(problem, target) if tile in ((), _strategy(one).tile)]
        found.sort(key=lambda one: predict(problem, target, one))
        return tuple(map(_strategy, found[: WINDOWS.most_tilings]))

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline behind it."""
        from conv_compiler.passes.wgmma_windows import WgmmaWindows

        problem, tiling = convolution_of(wgrad), _tiling(one)
        step = WgmmaWindows(
            tile_images=tiling.images,
            tile_rows=tiling.rows,
            tile_columns=tiling.columns,
            patch_rows=tiling.patch_rows,
            wave_groups=tiling.wave_groups,
            merged_groups=tiling.merged_groups,
            workgroups=tiling.workgroups,
            **sizes_of(problem),
        )
        info = written(target, tile_of(problem, tiling).threads)
        return Lowering(passes=(step,), schedule=Schedule(roles={"contraction": info}))

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by a formula fitted to times on a card."""
        return predict(convolution_of(wgrad), target, _tiling(one))

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction, and copies that go to LDS by themselves."""
        return Promises(instruction="wgmma.mma_async", loads_to_lds=True)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks, or that LDS holds no tile."""
        if why := misfit(wgrad, target):
            return why
        return "" if next(tilings(convolution_of(wgrad), target), None) else "LDS holds its windows"

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        return workgroups(convolution_of(wgrad), _tiling(one)), 1


def _strategy(tiling: WindowTiling) -> Strategy:
    return Strategy(name=WGMMA_WINDOWS.name, tiling=tiling, split_k=1)


WGMMA_WINDOWS = WgmmaWindowsKind(
    name="wgmma_windows",
    description="fwd and bwd_data of small groups by wave groups, windows kept in LDS; Hopper",
    tile="images x rows x columns of a workgroup's result pixels, of a phase",
    backends=("cuda",),
)
