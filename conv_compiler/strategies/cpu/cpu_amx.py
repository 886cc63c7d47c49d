# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_amx`: sums in the tile registers of AMX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.amx_tiles import tile_candidates, tile_instruction, tile_refusal
from conv_compiler.strategies.cpu.cost_constants import AMX
from conv_compiler.strategies.cpu.cpu_direct import CPU_DIRECT
from conv_compiler.strategies.cpu.cpu_dot_direct import CPU_DOT_DIRECT
from conv_compiler.strategies.cpu.packed import PackedKind
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class CpuAmx(PackedKind):
    """Tiles multiply pairs or fours of images."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tilings of an instruction for the data types."""
        return tile_candidates(wgrad, target, split_k, tile)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Where direct kernels take a convolution whose source channels fill no tile."""
        if not isinstance(wgrad, EquivalentWgrad):
            return False
        (sources, _), row = channels(wgrad.of), tile_instruction(wgrad, target)
        assert row is not None
        is_direct = not all(one.rule(wgrad, target) for one in (CPU_DOT_DIRECT, CPU_DIRECT))
        return is_direct and sources < AMX.least_depth_rows * row.products

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """Why there are no candidates; empty where there are."""
        return tile_refusal(wgrad, target)


CPU_AMX = CpuAmx(
    name="cpu_amx", description="sums in tile registers, products of pairs or fours of images"
)
