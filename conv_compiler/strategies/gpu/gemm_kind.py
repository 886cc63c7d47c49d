# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the two GEMM strategies of GPUs have in common: splits, cost and occupancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu import grid, loop_order, ranking
from conv_compiler.strategies.gpu.channels_last import copied
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import SLACK
from conv_compiler.strategies.gpu.data_gradient_kernels import arranging_seconds
from conv_compiler.strategies.gpu.reversed_taps import reads_reversed
from conv_compiler.strategies.gpu.tail_masking import is_cdna
from conv_compiler.strategies.kind import StrategyKind
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def gpu_tiling(one: Strategy) -> GpuTiling:
    """The tiling of a GEMM strategy."""
    assert isinstance(one.tiling, GpuTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class GemmKind(StrategyKind):
    """A strategy whose payload is a batched GEMM on whole tiles."""

    normalise: str = "implicit_gemm"
    has_script: bool = True
    is_modelled: bool = True

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return ranking.splits(wgrad, target, gpu_tiling(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that hold a product: each part is whole tiles of gemm_k."""
        return loop_order.filled_parts(wgrad, gpu_tiling(one), split_k)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by the performance model, with those of the kernel that arranges a weight.

        The factors beside wave groups were fitted to times of all kernels.
        """
        seconds = predict(wgrad, target, gpu_tiling(one), one.split_k)
        if target.mma_sync and one.mma:
            return seconds * SLACK.beside_wave_groups_share
        if copied(wgrad) is not None:
            cdna = is_cdna(target)
            seconds *= (
                SLACK.cdna_single_element_reads_share if cdna else SLACK.single_element_reads_share
            )
        if reads_reversed(wgrad, target, gpu_tiling(one)):
            return seconds
        return seconds + arranging_seconds(wgrad, target)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = gpu_tiling(one)
        return grid.tiles(wgrad, tiling), loop_order.iterations(wgrad, tiling, 1)
