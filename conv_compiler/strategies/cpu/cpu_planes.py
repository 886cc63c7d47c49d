# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_planes`: convolutions of few channels a group and their data gradients, with
channels in front of the pixels and the pixels of a row in the lanes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.slides import spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import PLANES
from conv_compiler.strategies.cpu.cpu_direct import worth_moving
from conv_compiler.strategies.cpu.cpu_dot_direct import CPU_DOT_DIRECT
from conv_compiler.strategies.cpu.cpu_kind import fastest, pairs, rounding_of, vector_schedule
from conv_compiler.strategies.cpu.plane_tiles import tilings
from conv_compiler.strategies.cpu_tilings import PlaneTiling
from conv_compiler.strategies.kind import Lowering, OnePart, Promises

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
        "it has one or two dimensions": problem.ndim <= 2,
        "the strides of a data gradient are one": problem.direction == "fwd"
        or set(problem.stride) == {1},
        f"its stride along a row is {PLANES.most_stride_pixels} at most": problem.stride[-1]
        <= PLANES.most_stride_pixels,
        f"its filter has {PLANES.most_taps} taps at most": few,
        "its operands are of one type, and not multiplied in terms": problem.terms is None
        and len(set(wgrad.operand_dtypes)) == 1
        and not problem.operand_type.is_f8,
        "its windows meet the image": few
        and all(one.slide(problem.direction).meets for one in spaced(problem)),
    }
    if broken := next((rule for rule, holds in rules.items() if not holds), ""):
        return broken
    has_tile = next(tilings(problem, target.cpu, _instruction(problem, target)), None)
    return "" if has_tile else "the stack holds rows of its source"


def _instruction(problem: ConvProblem, target: Target) -> str:
    """What multiplies two source channels at once; empty where none does."""
    several = pairs(problem, target)
    return several.name if several else ""


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
        several = tilings(wgrad.of, target.cpu, _instruction(wgrad.of, target))
        found = ((cycles, (-one.block, -one.rows), one) for cycles, one in several)
        return fastest(self.name, found, tile)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Where groups have many source channels, lanes of a row no pixel, or `cpu_dot_direct`
        multiplies pairs that this kernel has not; never depthwise."""
        assert isinstance(wgrad, EquivalentWgrad)
        problem, lanes = wgrad.of, _tiling(one).lanes
        sources, results = channels(problem)
        if sources == results == 1:
            return False
        fast = target.cpu.fast_pairs(problem.dtype)
        if sources % 2 and problem.g == 1 and fast and not CPU_DOT_DIRECT.rule(wgrad, target):
            return worth_moving(problem, PLANES.least_moved_products)
        width = (problem.out_image if problem.direction == "fwd" else problem.image)[-1]
        full = width / (-(-width // lanes) * lanes)
        is_few = sources <= PLANES.few_source_channels
        least = PLANES.least_few_full_share if is_few else PLANES.least_full_share
        return sources > PLANES.most_source_channels or full < least

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline that lowers it."""
        from conv_compiler.passes.plane_kernel import PlaneKernel

        assert isinstance(wgrad, EquivalentWgrad)
        step = PlaneKernel(
            rounding=rounding_of(wgrad.of, target), **asdict(_tiling(one)), **sizes_of(wgrad.of)
        )
        roles = ("contraction",) if step.is_depthwise else ("contraction", "packing")
        return Lowering(passes=(step,), schedule=vector_schedule(*roles, on_stack=True))

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction of pairs, where there is one."""
        return Promises(instruction=_tiling(one).instruction)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target)


def _tiling(one: Strategy) -> PlaneTiling:
    assert isinstance(one.tiling, PlaneTiling)
    return one.tiling


CPU_PLANES = CpuPlanes(
    name="cpu_planes",
    description="groups of few channels and data gradients, channels in front, pixels in the lanes",
    tile="result channels x rows x adjacent pixels that a thread keeps in registers",
)
