# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_loops`: the contraction as the compiler lowers it unasked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.loops import LoopsKind, loops_candidates
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuLoops(LoopsKind):
    """The compiler's own loops: always possible, seldom fast."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The one without a tile."""
        return loops_candidates(wgrad, target, split_k, tile)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Always."""
        return True


CPU_LOOPS = CpuLoops(
    name="cpu_loops", description="the compiler's own loops, where no loop fills lanes"
)
