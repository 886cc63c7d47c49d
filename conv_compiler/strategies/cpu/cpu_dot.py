# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_dot`: an instruction adds the products of two images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.packed import PackedKind, dot_candidates, dot_refusal
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuDot(PackedKind):
    """Pairs of images are multiplied."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tilings of the halved batch."""
        return dot_candidates(wgrad, target, split_k, tile)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return dot_refusal(wgrad, target)


CPU_DOT = CpuDot(name="cpu_dot", description="pairs of images, two products an instruction")
