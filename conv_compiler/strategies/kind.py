# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The protocol of a strategy: which tilings fit, what one costs, what it lowers to and promises.

A kind of strategy is a value of a class derived from `StrategyKind`, one file each; the table of
them is `STRATEGIES` in `registry.py`. All methods take the equivalent weight gradient of a problem
(`targets/resolve.py`) and the target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.canonical import elements_of
from conv_compiler.problem.dtypes import DTYPES

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.schedule import Schedule
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target

GPU_BACKENDS = ("rocm", "cuda")


@dataclass(frozen=True, kw_only=True)
class Lowering:
    """How a payload becomes a kernel: passes over the payload, then what the compiler is told."""

    passes: tuple[Pass, ...]
    schedule: Schedule


@dataclass(frozen=True, kw_only=True)
class Promises:
    """What the machine code of the main kernel must show (`compiler/proofs.py` holds it to this).

    `instruction` is how the mnemonic of its matrix or pair instruction starts; without one nothing
    else is promised. `iterations` counts those of the main loop. `is_pipelined` and
    `is_interleaved` tell of its software pipeline and of the order of its operations, `keeps_loop`
    that some loop must be left. `keeps_tail` tells that an operand is not masked behind its last
    pixel or row, `reads_transposed` that instructions read LDS transposed, and `loads_to_lds` that
    loads write to it.
    """

    instruction: str = ""
    iterations: int = 0
    is_pipelined: bool = False
    is_interleaved: bool = False
    keeps_loop: bool = False
    keeps_tail: bool = False
    reads_transposed: bool = False
    loads_to_lds: bool = False


@dataclass(frozen=True, kw_only=True)
class StrategyKind(ABC):
    """A kind of strategy.

    `name` is what users write, `tile` says what the numbers of a tile are, and `backends` where it
    runs. `normalise` names the script of `mlir/normalise/` that runs its passes; empty where it has
    none. `has_script` tells whether a user's own script can replace parts of its own. Kinds with
    `is_modelled` are ranked by `cost`; the others are taken in the order of the table. Kinds with
    `sums_alone` compute the gradient of a bias, and the others all else.
    """

    name: str
    description: str
    tile: str
    backends: tuple[str, ...]
    normalise: str = ""
    has_script: bool = False
    is_modelled: bool = False
    sums_alone: bool = False

    @abstractmethod
    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Strategies that fit, best first; none where the kind does not fit the problem.

        `split_k` is the split-K factor asked for, 0 for any; `tile` the tile asked for, empty for
        any. A candidate that leaves the factor open has 0.
        """

    @abstractmethod
    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The passes and the schedule that make the kernel of a strategy."""

    @abstractmethod
    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors worth trying for a strategy's tiling, the preferred one first."""

    @abstractmethod
    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """How many of `split_k` parts hold any product."""

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Modelled seconds; 0 where the kind has no model."""
        return 0.0

    def in_front(self, wgrad: ConvProblem, target: Target) -> float:
        """Modelled seconds of kernels in front that `cost` leaves out, and not all kinds have: here
        the conversions of operands with block scales."""
        if not (target.scaled and elements_of(wgrad)):
            return 0.0
        elements = math.prod(wgrad.input_shape) + math.prod(wgrad.output_shape)
        size = DTYPES[elements_of(wgrad)].bytes_of(elements) + elements * wgrad.data_type.bytes
        moved = size / (target.memory_gb_per_s * 1e9)
        return moved + 2 * rank_facts(target).launch_seconds

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """What the machine code must show; nothing by default."""
        return Promises()

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Whether candidates of kinds further down the table come before this one."""
        return False

    def prefer(
        self, wgrad: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
    ) -> tuple[Strategy, ...]:
        """All candidates in a better order, where one of this kind is the fastest."""
        return ranked

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where the kind does not say."""
        return ""

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part; (0, 0) where it runs on a CPU."""
        return 0, 0

    def auto_split(self, wgrad: ConvProblem, target: Target, one: Strategy) -> int:
        """The split-K factor by which a strategy's tiling is fastest."""
        splits = self.splits(wgrad, target, one)
        return min(splits, key=lambda parts: self.cost(wgrad, target, one.with_split_k(parts)))


@dataclass(frozen=True, kw_only=True)
class OnePart(StrategyKind):
    """A kind of strategy whose kernels have all products of a sum: split-K is 1."""

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """One."""
        return [1]

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """One."""
        return 1
