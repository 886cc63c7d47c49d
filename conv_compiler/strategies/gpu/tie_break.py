# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Break ties between GPU tilings whose modelled times agree.

The winner is the tiling that issues the fewest vector instructions for each matrix instruction, or
of loops without an order the one that is fastest at sustained rates. On RDNA it is the one that
reads least from L2 where memory and L2 bind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.cost import is_behind_memory, l2_bytes, predict
from conv_compiler.strategies.gpu.cost_constants import TIE_BREAK
from conv_compiler.strategies.gpu.instruction_counts import mma_counts, mma_of
from conv_compiler.strategies.gpu.load_gain import Timed, by_both_ends, loaded_chip
from conv_compiler.strategies.gpu.loop_order import along_gemm_k, iterations
from conv_compiler.strategies.gpu.tail_masking import is_cdna
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def prefer_low_valu(
    problem: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
) -> tuple[Strategy, ...]:
    """Put first, of the strategies that agree with the fastest, the one with few instructions.

    Only strategies with the same loop order compete. With the split-K factor of the fastest, the
    first with few vector instructions wins. Where none has so few, the smallest split-K factor
    wins. This holds for CDNA alone, where vector instructions run beside matrix instructions. It
    does not hold for 1x1 filters and merged groups, where memory binds.
    """
    first = ranked[0]
    if not first.mma or problem.is_pointwise or problem.g > 1 or not is_cdna(target):
        return ranked
    tiled = (one for one in ranked if one.mma and isinstance(one.tiling, GpuTiling))
    same = [one for one in tiled if _loops(one) == _loops(first)]
    fastest = _seconds(problem, target, first)
    alike = (1 + TIE_BREAK.alike_share) * fastest
    as_split = [one.with_split_k(first.split_k) for one in same]
    low_valu = (
        one
        for one in as_split
        if _seconds(problem, target, one) <= alike and _has_low_valu(problem, target, one)
    )
    limit = (1 + TIE_BREAK.equal_share) * fastest
    equal = (one for one in same if _seconds(problem, target, one) <= limit)
    chosen = next(low_valu, None) or min(equal, key=lambda one: one.split_k)
    return tuple(dict.fromkeys((chosen, *ranked)))


def prefer_under_load(
    problem: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
) -> tuple[Strategy, ...]:
    """Put first, of the strategies that agree with the fastest, the one that is fastest under load.

    What they read differs, and L2 and memory keep up other shares of their peaks than the clock
    does. This holds for CDNA and loops without an order of their own, as of 1x1 filters. Times of
    others are off by more than they differ.
    """
    first = ranked[0]
    tiling = first.tiling
    if not first.mma or not isinstance(tiling, GpuTiling) or tiling.outside:
        return ranked
    loaded = loaded_chip(target, tiling)
    if not is_cdna(target) or loaded is None:
        return ranked
    limit = (1 + TIE_BREAK.equal_share) * _seconds(problem, target, first)
    same = [one for one in ranked if one.name == first.name and _loops(one) == _loops(first)]
    equal = (one for one in same if _seconds(problem, target, one) <= limit)
    chosen = min(equal, key=lambda one: _seconds(problem, loaded, one))
    return tuple(dict.fromkeys((chosen, *ranked)))


def prefer_load_gain(
    problem: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
) -> tuple[Strategy, ...]:
    """Put first the strategy that is hardly slower than the first and much faster under load, if
    there is one (`load_gain.py`)."""
    first = ranked[0]
    if not first.mma or not isinstance(first.tiling, GpuTiling):
        return ranked
    same = [one for one in ranked if one.name == first.name and one.mma]
    timed = [
        Timed(_seconds(problem, target, one), one.split_k, one.tiling)
        for one in same
        if isinstance(one.tiling, GpuTiling)
    ]
    chosen = by_both_ends(problem, target, timed[0], timed[1:])
    return tuple(dict.fromkeys((same[timed.index(chosen)], *ranked)))


def prefer_few_lines(
    problem: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
) -> tuple[Strategy, ...]:
    """Put first, of the strategies that agree with the fastest, the one that reads least from L2.

    This holds for RDNA where memory binds the fastest and L2 is about as busy, and for operands
    along gemm_k. Where units bind, a tiling that reads less may have fewer waves in flight, and is
    slower by more than the prediction says.
    """
    first = ranked[0]
    if not first.mma or not isinstance(first.tiling, GpuTiling) or is_cdna(target):
        return ranked
    if max(along_gemm_k(problem, target)) == 1 or not _is_behind_memory(problem, target, first):
        return ranked
    limit = (1 + TIE_BREAK.equal_share) * _seconds(problem, target, first)
    equal = [
        one
        for one in ranked
        if one.name == first.name
        and one.split_k == first.split_k
        and _loops(one) == _loops(first)
        and _seconds(problem, target, one) <= limit
    ]
    chosen = min(equal, key=lambda one: _l2_bytes(problem, target, one))
    return tuple(dict.fromkeys((chosen, *ranked)))


def _loops(one: Strategy) -> tuple[object, ...]:
    tiling = one.tiling
    assert isinstance(tiling, GpuTiling)
    return tiling.outside, tiling.taps_in_rows, tiling.merged_groups


def _is_behind_memory(problem: ConvProblem, target: Target, one: Strategy) -> bool:
    assert isinstance(one.tiling, GpuTiling)
    return is_behind_memory(problem, target, one.tiling, one.split_k)


def _l2_bytes(problem: ConvProblem, target: Target, one: Strategy) -> float:
    assert isinstance(one.tiling, GpuTiling)
    return l2_bytes(problem, target, one.tiling, one.split_k)


def _seconds(problem: ConvProblem, target: Target, one: Strategy) -> float:
    assert isinstance(one.tiling, GpuTiling)
    return predict(problem, target, one.tiling, one.split_k)


def _has_low_valu(problem: ConvProblem, target: Target, one: Strategy) -> bool:
    """Whether the matrix unit is sure to bind, in a loop long enough for that to matter."""
    tiling = one.tiling
    assert isinstance(tiling, GpuTiling)
    counts = mma_counts(problem, target, tiling, mma_of(target, tiling), one.split_k)
    few = counts.iteration.valu <= TIE_BREAK.low_valu_instructions * counts.iteration.equivalents
    return few and iterations(problem, tiling, one.split_k) >= TIE_BREAK.least_iterations
