# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_planes`: depthwise convolutions and their data gradients, channels in front of
the pixels, with the pixels of a row in the lanes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.slides import spaced
from conv_compiler.strategies.cpu.cost_constants import PLANES
from conv_compiler.strategies.cpu.cpu_kind import fastest, rounding_of, vector_schedule
from conv_compiler.strategies.cpu.plane_tiles import tilings
from conv_compiler.strategies.cpu_tilings import PlaneTiling
from conv_compiler.strategies.kind import Lowering, OnePart

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem = wgrad.of
    row = problem.layout_row.grouped
    few = math.prod(problem.filter) <= PLANES.most_taps
    rules = {
        "its channels lie in front of the pixels": (row.input, row.output) == ("NGC*", "NGK*"),
        "its groups have one channel": problem.c == problem.k == 1,
        "it has one or two dimensions": problem.ndim <= 2,
        "its strides are one": set(problem.stride) == {1},
        f"its filter has {PLANES.most_taps} taps at most": few,
        "its operands are of one type, and not multiplied in terms": problem.terms is None
        and len(set(wgrad.operand_dtypes)) == 1
        and not problem.operand_type.is_f8,
        "its windows meet the image": few
        and all(one.slide(problem.direction).meets for one in spaced(problem)),
    }
    if broken := next((rule for rule, holds in rules.items() if not holds), ""):
        return broken
    has_tile = next(tilings(problem, target.cpu), None)
    return "" if has_tile else "the stack holds rows of its source"


@dataclass(frozen=True, kw_only=True)
class CpuPlanes(OnePart):
    """A kernel that a pass writes (`passes/plane_kernel.py`)."""

    backends: tuple[str, ...] = ("llvm-cpu",)
    normalise: str = "cpu_planes"

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The tiling that takes the fewest cycles."""
        if split_k > 1 or misfit(wgrad, target):
            return ()
        assert isinstance(wgrad, EquivalentWgrad)
        several = tilings(wgrad.of, target.cpu)
        return fastest(self.name, ((cycles, (-one.rows,), one) for cycles, one in several), tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline that lowers it."""
        from conv_compiler.passes.plane_kernel import PlaneKernel

        assert isinstance(wgrad, EquivalentWgrad)
        assert isinstance(one.tiling, PlaneTiling)
        step = PlaneKernel(
            rounding=rounding_of(wgrad.of, target), **asdict(one.tiling), **sizes_of(wgrad.of)
        )
        return Lowering(passes=(step,), schedule=vector_schedule("contraction", on_stack=True))

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target)


CPU_PLANES = CpuPlanes(
    name="cpu_planes",
    description="depthwise forward and data gradient, channels in front, pixels in the lanes",
    tile="rows x adjacent pixels that a thread keeps in registers",
)
