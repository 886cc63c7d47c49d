# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best loop order and split-K factor of each tiling of a GEMM, fastest first by the model."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import SEARCH, SPLITS
from conv_compiler.strategies.gpu.grid import tiles
from conv_compiler.strategies.gpu.load_gain import Timed, by_both_ends
from conv_compiler.strategies.gpu.loop_order import filled_parts, with_stages
from conv_compiler.strategies.gpu.search import split_choices
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


class _Timed(NamedTuple):
    """A tiling with its best split-K factor; `order` is smallest for the one to take first."""

    order: tuple[float, int, int, int, int]
    split_k: int
    tiling: GpuTiling


def rank_tilings(
    name: str, problem: ConvProblem, target: Target, tilings: list[GpuTiling], split_k: int
) -> tuple[Strategy, ...]:
    """The best loop order and split-K factor of each tile, fastest first.

    Of equals the one whose tiles reach least beyond the result comes first, then the larger tile,
    then the one with wider loads. `split_k` fixes the factor, 0 leaves it open. All loop orders of
    a tile need about as many registers: where one has too few, so have the others, and only the
    best is kept.
    """
    timed = [
        _timed(problem, target, tiling, split_k, number) for number, tiling in enumerate(tilings)
    ]
    best: dict[tuple[object, ...], Strategy] = {}
    for _, factor, tiling in sorted(timed, key=lambda entry: entry.order):
        tile = (tiling.mma, tiling.workgroup, tiling.subgroups, tiling.piece)
        best.setdefault(tile, Strategy(name=name, tiling=tiling, split_k=factor))
    return tuple(best.values())[: SEARCH.most_tilings]


def _timed(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int, number: int
) -> _Timed:
    several = splits(problem, target, tiling)
    if split_k:
        several = [filled_parts(problem, tiling, split_k)]
    staged = [(n, with_stages(problem, tiling, n)) for n in several]
    timed = [Timed(predict(problem, target, one, n), n, one) for n, one in staged]
    first, *others = sorted(timed, key=_seconds)
    _, factor, tiling = by_both_ends(problem, target, first, others)
    read = tiling.copy_a[0] + tiling.copy_b[0]
    covered = tiles(problem, tiling) * math.prod(tiling.workgroup[:2])
    order = (first.seconds, covered, -math.prod(tiling.workgroup), -read, number)
    return _Timed(order, factor, tiling)


_seconds = attrgetter("seconds")


def splits(problem: ConvProblem, target: Target, tiling: GpuTiling) -> list[int]:
    """Split-K factors worth trying."""
    return split_choices(problem, target, tiling, SPLITS.most_parts)
