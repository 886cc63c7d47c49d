# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every admissible strategy and split of a problem on a target, and the time one takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.compiler.compile import compile
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.runtime.kernel import load
from conv_compiler.strategies.select import choose

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.runtime.times import Times
    from conv_compiler.strategies.strategy import Strategy, StrategyRequest
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One strategy that compiled: `seconds` are the median of `times` that a device took.

    Where there are no times, they are modelled.
    """

    artifact: Artifact
    seconds: float
    times: Times | None

    @property
    def measured(self) -> bool:
        """Whether a device took the time."""
        return self.times is not None

    @property
    def strategy(self) -> Strategy:
        """What was compiled."""
        return self.artifact.strategy


def admissible(
    problem: ConvProblem, target: Target, wanted: StrategyRequest, splits: Sequence[int | str]
) -> tuple[Strategy, ...]:
    """Each strategy with each of the splits it can have, once.

    Raises what `choose` raises where no split is possible.
    """
    found: dict[Strategy, None] = {}
    refused: UnsupportedStrategy | None = None
    for split_k in splits:
        try:
            found |= dict.fromkeys(choose(problem, target, wanted, split_k))
        except UnsupportedStrategy as error:  # more parts than products
            refused = refused or error
    if refused and not found:
        raise refused
    return tuple(found)


def trial(
    problem: ConvProblem,
    target: Target,
    strategy: Strategy,
    device: str | None = None,
    *,
    budget: float = 0.2,
) -> Trial:
    """Compile a strategy and time it: on the device, or where that is virtual by the model.

    `budget` seconds go to a measurement. Raises what `compile` and `load` raise.
    """
    from conv_compiler.model.module import model_module
    from conv_compiler.verification.slices import call_operands

    artifact = compile(problem, target.name, strategy)
    kernel = load(artifact, device)
    if kernel.virtual:
        seconds = model_module(artifact.vmfb, problem=problem).seconds
        return Trial(artifact=artifact, seconds=seconds, times=None)
    times = kernel.times(*call_operands(problem, "random"), budget=budget)
    return Trial(artifact=artifact, seconds=times.median, times=times)
