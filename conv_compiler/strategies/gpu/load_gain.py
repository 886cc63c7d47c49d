# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of some kernels to take by both ends of a chip's range: at the boost clock and under load.

L2 and memory keep up another share of their peaks than the clock does. So of two kernels that take
about as long at the boost clock, one may take much longer under load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.roofline import rate_type
from conv_compiler.model.under_load import under_load
from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import LOAD_GAIN
from conv_compiler.strategies.gpu.instruction_counts import mma_of

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


class Timed(NamedTuple):
    """A tiling in so many parts, and its predicted seconds at the boost clock."""

    seconds: float
    split_k: int
    tiling: GpuTiling


def loaded_chip(target: Target, tiling: GpuTiling) -> Target | None:
    """The chip while the tiling's matrix instructions run; None where it has none, or where nothing
    was published."""
    if not tiling.mma:
        return None
    return under_load(target, rate_type(mma_of(target, tiling).dtype))


def by_both_ends(problem: ConvProblem, target: Target, first: Timed, others: list[Timed]) -> Timed:
    """The first, or one that is hardly slower at the boost clock and much faster under load.

    All are tilings of matrix instructions on operands of one type. Of `fwd` and `bwd_data` it is
    the first: predictions are off by more than the kernels differ.
    """
    if isinstance(problem, EquivalentWgrad):
        return first
    limit = (1 + LOAD_GAIN.slower_share) * first.seconds
    near = [one for one in others if one.seconds <= limit]
    chip = loaded_chip(target, first.tiling) if near else None
    if chip is None:
        return first

    def loaded(one: Timed) -> float:
        return predict(problem, chip, one.tiling, one.split_k)

    best = min(near, key=loaded)
    return best if loaded(first) >= (1 + LOAD_GAIN.faster_share) * loaded(best) else first
