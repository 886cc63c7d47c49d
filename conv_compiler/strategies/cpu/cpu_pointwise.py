# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_pointwise`: 1x1 convolutions and their data gradients, channels in front of the
pixels, with pixels in the lanes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.strategies.cpu.cost_constants import POINTWISE
from conv_compiler.strategies.cpu.cpu_kind import fastest, pairs, rounding_of, vector_schedule
from conv_compiler.strategies.cpu.pointwise_tiles import Pointwise
from conv_compiler.strategies.cpu_tilings import PointwiseTiling
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
    row, whole = problem.layout_row.grouped, (1,) * problem.ndim
    counted = Pointwise(problem=problem, processor=target.cpu, instruction=None)
    rules = {
        "its channels lie in front of the pixels": (row.input, row.output) == ("NGC*", "NGK*"),
        "its filter has one tap, without stride or pads": problem.filter == problem.stride == whole
        and not any((*problem.pad_low, *problem.pad_high)),
        "its operands are of one type, and not multiplied in terms": problem.terms is None
        and len(set(wgrad.operand_dtypes)) == 1
        and not problem.operand_type.is_f8,
        "an image has a vector of pixels": counted.pixels >= counted.lanes,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


@dataclass(frozen=True, kw_only=True)
class CpuPointwise(OnePart):
    """A kernel that a pass writes (`passes/pointwise_kernel.py`)."""

    backends: tuple[str, ...] = ("llvm-cpu",)
    normalise: str = "cpu_pointwise"

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The tiling that takes the fewest cycles."""
        if split_k > 1 or misfit(wgrad, target):
            return ()
        assert isinstance(wgrad, EquivalentWgrad)
        counted = Pointwise(
            problem=wgrad.of, processor=target.cpu, instruction=pairs(wgrad.of, target)
        )
        found = ((cycles, (-one.block,), one) for cycles, one in counted.tilings())
        return fastest(self.name, found, tile)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Where vectors of a row of pixels are not full, where pairs are not multiplied
        that others multiply, and where pairs would be riffled for each block again."""
        assert isinstance(wgrad, EquivalentWgrad)
        counted = Pointwise(problem=wgrad.of, processor=target.cpu, instruction=None)
        vectors = -(-counted.pixels // counted.lanes)
        is_full = counted.pixels >= POINTWISE.least_full_share * vectors * counted.lanes
        several = target.cpu.fast_pairs(wgrad.of.dtype)
        if several is None:
            return not is_full
        return not is_full or not pairs(wgrad.of, target) or not _tiling(one).on_stack

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline that lowers it."""
        from conv_compiler.passes.pointwise_kernel import PointwiseKernel

        assert isinstance(wgrad, EquivalentWgrad)
        step = PointwiseKernel(
            rounding=rounding_of(wgrad.of, target), **asdict(_tiling(one)), **sizes_of(wgrad.of)
        )
        kernels = vector_schedule("contraction", "packing", on_stack=True)
        return Lowering(passes=(step,), schedule=kernels)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction of pairs, where there is one."""
        return Promises(instruction=_tiling(one).instruction)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target)


def _tiling(one: Strategy) -> PointwiseTiling:
    assert isinstance(one.tiling, PointwiseTiling)
    return one.tiling


CPU_POINTWISE = CpuPointwise(
    name="cpu_pointwise",
    description="1x1 convolutions and data gradients, channels in front, pixels in the lanes",
    tile="result channels x pixels that a thread keeps in registers",
)
