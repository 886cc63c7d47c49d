# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `depthwise`: windows and sums in registers, for groups of one channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu import depthwise, depthwise_cost
from conv_compiler.strategies.kind import Lowering, StrategyKind
from conv_compiler.strategies.strategy import DepthwiseTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def _tiling(one: Strategy) -> DepthwiseTiling:
    assert isinstance(one.tiling, DepthwiseTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class Depthwise(StrategyKind):
    """A kernel that a pass writes (`passes/depthwise.py`)."""

    normalise: str = "depthwise"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Strips of output pixels that fit, fastest first."""
        return depthwise.candidates(wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline behind it."""
        return Lowering(
            passes=depthwise.passes(wgrad, target, one),
            schedule=depthwise.schedule(wgrad, target, one),
        )

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return depthwise.splits(wgrad, target, _tiling(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that hold a product: each part is whole strips."""
        return depthwise.filled_parts(wgrad, _tiling(one), split_k)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by the performance model."""
        return depthwise_cost.predict(wgrad, target, _tiling(one), one.split_k)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = _tiling(one)
        return depthwise_cost.blocks(wgrad, tiling), depthwise_cost.strip_rounds(wgrad, tiling)


DEPTHWISE = Depthwise(
    name="depthwise",
    description="windows and sums in registers, vector fma; groups of one channel",
    tile="columns x rows x groups of a thread's strip of output pixels",
    backends=("rocm",),
)
