# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the strategies of CPUs have in common: their tile, their splits and their promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.split_k import filled_parts
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.kind import Promises, StrategyKind
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def cpu_tiling(one: Strategy) -> CpuTiling:
    """The tiling of a CPU strategy."""
    assert isinstance(one.tiling, CpuTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class CpuKind(StrategyKind):
    """A strategy for CPUs. Kinds are taken in the order of the table: they have no model."""

    tile: str = "sums a thread keeps in registers, by loop, the vector lanes last"
    backends: tuple[str, ...] = ("llvm-cpu",)

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that hold a product."""
        return filled_parts(wgrad, cpu_tiling(one), split_k)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction of pairs or tiles, where the tiling names one."""
        return Promises(instruction=cpu_tiling(one).instruction)
