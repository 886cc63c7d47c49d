"""Of GPU tilings that are about equally fast by the model, the one that has the least besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.instruction_counts import mma_counts, mma_of
from conv_compiler.strategies.gpu.loop_order import trips
from conv_compiler.strategies.gpu.tail_masking import is_cdna
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Shares of the time by which predictions of alike tilings are off, held against their code: tiles
# of another size in the same number of parts, and any. A part more is sure to cost memory traffic.
ALIKE, EQUAL = 1 / 16, 0.01
# Vector operations for each matrix instruction's work below which the matrix units, which take four
# times as long for it, are sure to bind; and trips below which a loop ends before that matters.
LEAN_VALU, LEAN_TRIPS = 2.0, 5


def lean_first(
    problem: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
) -> tuple[Strategy, ...]:
    """The ranked strategies, before the first one another of its form that is as fast and leaner.

    In the first one's number of parts the fastest with few vector operations; where none has so
    few, that of the fewest parts. Only on CDNA, where vector operations run beside matrix
    instructions, and not for 1x1 and merged groups, where memory binds.
    """
    first = ranked[0]
    if not first.mma or problem.is_pointwise or problem.g > 1 or not is_cdna(target):
        return ranked
    same = [one for one in ranked if one.mma and _form(one) == _form(first)]
    limit = _seconds(problem, target, first)
    in_parts = [one.with_split_k(first.split_k) for one in same]
    lean = (
        one
        for one in in_parts
        if _seconds(problem, target, one) <= (1 + ALIKE) * limit and _is_lean(problem, target, one)
    )
    equal = (one for one in same if _seconds(problem, target, one) <= (1 + EQUAL) * limit)
    chosen = next(lean, None) or min(equal, key=lambda one: one.split_k)
    return tuple(dict.fromkeys((chosen, *ranked)))


def _form(one: Strategy) -> tuple[object, ...]:
    tiling = one.tiling
    assert isinstance(tiling, GpuTiling)
    return tiling.outside, tiling.taps_in_rows, tiling.merged_groups


def _seconds(problem: ConvProblem, target: Target, one: Strategy) -> float:
    assert isinstance(one.tiling, GpuTiling)
    return predict(problem, target, one.tiling, one.split_k)


def _is_lean(problem: ConvProblem, target: Target, one: Strategy) -> bool:
    tiling = one.tiling
    assert isinstance(tiling, GpuTiling)
    trip = mma_counts(problem, target, tiling, mma_of(target, tiling), one.split_k).trip
    few = trip.valu <= LEAN_VALU * trip.equivalents
    return few and trips(problem, tiling, one.split_k) >= LEAN_TRIPS
