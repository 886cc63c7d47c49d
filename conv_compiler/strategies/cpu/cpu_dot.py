# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_dot`: an instruction adds the products of two images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.cpu_kind import cpu_tiling
from conv_compiler.strategies.cpu.packed import PackedKind, dot_candidates, dot_refusal
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.host import PAIR_INSTRUCTIONS

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

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Dense problems where pairs are slow; those of many groups wait for memory."""
        row = PAIR_INSTRUCTIONS[cpu_tiling(one).instruction]
        return wgrad.g == 1 and not target.cpu.is_fast(row)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return dot_refusal(wgrad, target)


CPU_DOT = CpuDot(name="cpu_dot", description="pairs of images, two products an instruction")
