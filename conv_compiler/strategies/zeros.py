# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `zeros`: a batch of 0 has no products, and its result is zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.kind import GPU_BACKENDS, Lowering, OnePart
from conv_compiler.strategies.schedule import Schedule

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Zeros(OnePart):
    """Never a candidate: `choose` takes it for a batch of 0, and for no other."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """None."""
        return ()

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The payload as it is built."""
        return Lowering(passes=(), schedule=Schedule(roles={}))


ZEROS = Zeros(
    name="zeros",
    description="no products to sum: the result of a batch of 0",
    tile="none",
    backends=(*GPU_BACKENDS, "llvm-cpu"),
)
