# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_lin`: channels in vector lanes, by IREE's own tiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.loops import LoopsKind, lin_candidates, lin_refusal
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuLin(LoopsKind):
    """Channels of one group fill the lanes."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Lanes along c or k, the cheaper first."""
        return lin_candidates(wgrad, target, split_k, tile)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return lin_refusal(wgrad, target)


CPU_LIN = CpuLin(name="cpu_lin", description="channels in vector lanes, sums in registers")
