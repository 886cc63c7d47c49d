# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_packed`: operands are copied as the vector lanes read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.packed import (
    PackedKind,
    needs_no_copy,
    packed_candidates,
    packed_refusal,
)
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuPacked(PackedKind):
    """Single elements are multiplied."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tilings of any problem that has lanes."""
        return packed_candidates(wgrad, target, split_k, tile)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return packed_refusal(wgrad, target)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Where `cpu_lin` reads operands where they lie."""
        return needs_no_copy(wgrad, target, one)


CPU_PACKED = CpuPacked(name="cpu_packed", description="operands copied as the lanes want them")
