# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_grouped`: groups in vector lanes, for few channels a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.loops import LoopsKind, grouped_candidates, grouped_refusal
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuGrouped(LoopsKind):
    """Groups fill the lanes."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Lanes along the groups."""
        return grouped_candidates(wgrad, target, split_k, tile)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return grouped_refusal(wgrad, target)


CPU_GROUPED = CpuGrouped(
    name="cpu_grouped", description="groups in vector lanes, for few channels a group"
)
