# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_direct`: forward passes and data gradients, sums of pixels in registers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.slides import spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import DIRECT
from conv_compiler.strategies.cpu.cpu_kind import (
    CpuKind,
    fastest,
    rounding_of,
    vector_schedule,
)
from conv_compiler.strategies.cpu.direct_tiles import Direct
from conv_compiler.strategies.cpu.flattened import flattened
from conv_compiler.strategies.cpu.register_tiles import lanes_of
from conv_compiler.strategies.cpu_tilings import DirectTiling
from conv_compiler.strategies.kind import Lowering, Promises
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def product_of(problem: ConvProblem, native: int) -> str:
    """What lies in the lanes of a direct kernel; empty where nothing fills them.

    `native` counts the sums of a register.
    """
    sources, results = channels(problem)
    least = DIRECT.least_lane_channels
    if sources == results == 1:
        return "groups" if problem.g >= least else ""
    if results % native and results <= DIRECT.most_summed_channels and sources % native == 0:
        return "sources"
    return "results" if results >= least else ""


def sums_of(problem: ConvProblem, target: Target) -> int:
    """Sums in a register."""
    return lanes_of(target.cpu.unit, problem)


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem = wgrad.of
    product = product_of(problem, sums_of(problem, target))
    wide = problem.data_type.bytes >= problem.accumulator_type.bytes
    rules = {
        **form_rules(problem),
        "its operands are of one type, and not multiplied in terms": problem.terms is None
        and len(set(wgrad.operand_dtypes)) == 1
        and not problem.operand_type.is_f8,
        "channels, or groups of one, fill lanes": bool(product),
        "no op on the operands comes before single elements are widened": product != "results"
        or wide
        or problem.operand_ops == (None, None),
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def lie_last(problem: ConvProblem) -> bool:
    """Whether channels lie behind the pixels."""
    return problem.layout_row.grouped.input == "N*GC"


def worth_moving(problem: ConvProblem, products: int) -> bool:
    """Whether there are so many products for each element that is moved, as it takes for it to pay
    to move channels behind the pixels and back."""
    moved = math.prod(problem.input_shape) + math.prod(problem.output_shape)
    least = products if problem.g == 1 else DIRECT.least_moved_group_products
    return problem.flops >= 2 * moved * least


def form_rules(problem: ConvProblem) -> dict[str, bool]:
    """What a direct kernel asks of a convolution's layouts and sizes, and whether it holds."""
    row = problem.layout_row.grouped
    few = math.prod(problem.filter) <= DIRECT.most_taps
    few = few and problem.filter[-1] <= DIRECT.most_row_taps
    phases = 1 if problem.direction == "fwd" else math.prod(problem.stride)
    reads_result = problem.fused is not None and problem.fused.d_per == "element"
    return {
        "no tensor d lies as a result whose channels lie in front": lie_last(problem)
        or not reads_result,
        "its channels lie last, or all in front of the pixels": (row.input, row.output)
        in (("N*GC", "N*GK"), ("NGC*", "NGK*")),
        f"its filters have {DIRECT.most_taps} taps at most, {DIRECT.most_row_taps} in a row": few,
        f"its strides have {DIRECT.most_phase_pixels} phases at most": phases
        <= DIRECT.most_phase_pixels,
        # Of what is written down tap by tap: more would be listed for no end.
        "its windows meet the image": few
        and phases <= DIRECT.most_phase_pixels
        and all(one.slide(problem.direction).meets for one in spaced(problem)),
    }


def direct_tiling(one: Strategy) -> DirectTiling:
    assert isinstance(one.tiling, DirectTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class CpuDirect(CpuKind):
    """A kernel that a pass writes (`passes/direct_kernel.py`)."""

    normalise: str = "cpu_direct"
    moved_products: int = DIRECT.least_moved_products

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The tiling that takes the fewest cycles."""
        if split_k > 1 or self.rule(wgrad, target):
            return ()
        assert isinstance(wgrad, EquivalentWgrad)
        found = (
            (cycles, self.preference(one), replace(one, row_pixels=length))
            for length, problem in self.rows(wgrad, target).items()
            for cycles, one in self.counted(wgrad, problem, target).tilings()
        )
        return fastest(self.name, found, tile)

    def rows(self, wgrad: ConvProblem, target: Target) -> dict[int, ConvProblem]:
        """The problem, or its flattened ones that take the fewest cycles a pixel in registers."""
        assert isinstance(wgrad, EquivalentWgrad)
        several = flattened(wgrad.of)
        pixels = {
            length: self.counted(wgrad, problem, target).pixel_cycles
            for length, problem in several.items()
        }
        best = sorted(several, key=lambda length: (pixels[length], -length))
        return {length: several[length] for length in best[: DIRECT.tried_row_sizes]}

    def rule(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that a problem breaks; empty where it fits."""
        return misfit(wgrad, target)

    def counted(self, wgrad: ConvProblem, problem: ConvProblem, target: Target) -> Direct:
        """A problem as its cycles are counted: that of the equivalent weight gradient, or one of
        its flattened ones."""
        product = product_of(problem, sums_of(problem, target))
        return Direct(problem=problem, product=product, processor=target.cpu)

    def preference(self, one: DirectTiling) -> tuple[int, ...]:
        """Of tilings that take as many cycles the one with the most vectors, and pixels then."""
        return -one.vectors, -one.columns

    def least_moved(self, problem: ConvProblem) -> int:
        """Products for each element, from which on it pays to move channels."""
        return self.moved_products

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """Where it does not pay to move channels, or half of the lanes are empty and `cpu_packed`
        has images to fill its tiles with."""
        assert isinstance(wgrad, EquivalentWgrad)
        if not (lie_last(wgrad.of) or worth_moving(wgrad.of, self.least_moved(wgrad.of))):
            return True
        tiling, (_, results) = direct_tiling(one), channels(wgrad.of)
        empty = tiling.lanes < min(results, target.cpu.unit.lanes)
        return (
            tiling.product in ("results", "pairs", "windows")
            and empty
            and wgrad.of.n >= DIRECT.least_tile_rows
        )

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline that lowers it."""
        from conv_compiler.passes.direct_kernel import DirectKernel

        assert isinstance(wgrad, EquivalentWgrad)
        numbers = asdict(direct_tiling(one))
        del numbers["row_pixels"]  # which the sizes say
        step = DirectKernel(
            rows=numbers.pop("rows_share"),
            rounding=rounding_of(wgrad.of, target),
            **numbers,
            **self.sizes(wgrad.of, one),
        )
        return Lowering(passes=(step,), schedule=vector_schedule("contraction", "packing"))

    def sizes(self, problem: ConvProblem, one: Strategy) -> dict[str, Any]:
        """The sizes of the convolution as the pass computes it: those of the flattened problem
        whose rows the tiling is of."""
        images = 0 if lie_last(problem) else problem.n
        flat = flattened(problem)[direct_tiling(one).row_pixels]
        return {**sizes_of(flat), "source_images": images, "result_images": images}

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """One part: a register tile has all products of its sums."""
        return [1]

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """One part: a register tile has all products of its sums."""
        return 1

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction that multiplies tiles, where there is one."""
        return Promises(instruction=direct_tiling(one).instruction)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return self.rule(wgrad, target)


CPU_DIRECT = CpuDirect(
    name="cpu_direct",
    description="forward and data gradient as a convolution, pixels and channels in registers",
    tile="columns of pixels x channels that a thread keeps in registers",
)
