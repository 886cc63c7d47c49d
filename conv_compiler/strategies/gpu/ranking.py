"""The best form and split of each tiling of a GEMM, fastest first by the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.loop_order import (
    filled_parts,
    with_stages,
)
from conv_compiler.strategies.gpu.search import split_choices
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Tilings tried at most for a problem, should the first ones spill, but for the one that a subgroup
# copies least for: where pixels are few and odd, every element has a test, in two scalar registers
# of a wave of 64, and none of the fastest may have enough of those.
MOST_CANDIDATES = 8
# Parts the model may choose: beyond, a part's partial sums cost more than its work saves.
MOST_PARTS = 256


def rank_tilings(
    name: str, problem: ConvProblem, target: Target, tilings: list[GpuTiling], split_k: int
) -> tuple[Strategy, ...]:
    """The best form and split of each tile, fastest first; of equals the larger, then wider loads.

    Forms of one tile need about as many registers: where one has too few, so have the others.
    """
    timed: list[tuple[float, int, int, int, int, GpuTiling]] = []
    for tiling in tilings:
        several = splits(problem, target, tiling)
        if split_k:
            several = [filled_parts(problem, tiling, split_k)]
        seconds, parts = min(
            (predict(problem, target, with_stages(problem, tiling, n), n), n) for n in several
        )
        tiling = with_stages(problem, tiling, parts)
        read = tiling.copy_a[0] + tiling.copy_b[0]
        timed.append((seconds, -math.prod(tiling.workgroup), -read, len(timed), parts, tiling))
    best: dict[tuple[object, ...], Strategy] = {}
    for *_, parts, tiling in sorted(timed, key=lambda entry: entry[:4]):
        tile = (tiling.mma, tiling.workgroup, tiling.subgroups, tiling.piece)
        best.setdefault(tile, Strategy(name=name, tiling=tiling, split_k=parts))
    return tuple(best.values())[:MOST_CANDIDATES]


def splits(problem: ConvProblem, target: Target, tiling: GpuTiling) -> list[int]:
    """Numbers of parts worth trying."""
    return split_choices(problem, target, tiling, MOST_PARTS)
