# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_dot_direct`: forward passes and data gradients as a convolution, two adjacent
source channels, or two neighbours in a row of taps, multiplied at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.slides import spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import DIRECT, REGISTER_TILES
from conv_compiler.strategies.cpu.cpu_direct import (
    CpuDirect,
    direct_tiling,
    form_rules,
    product_of,
)
from conv_compiler.strategies.cpu.direct_tiles import Direct
from conv_compiler.targets.host import PAIR_INSTRUCTIONS
from conv_compiler.targets.limits import UNROLLED, WRITTEN_OUT_PAIRS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.targets import Target
    from conv_compiler.targets.host import PairInstruction


@dataclass(frozen=True, kw_only=True)
class PairedDirect(Direct):
    """A problem whose source channels are multiplied in twos."""

    instruction: PairInstruction

    @property
    def neighbours(self) -> int:
        """Source channels that are multiplied at once."""
        return 2

    @property
    def instruction_name(self) -> str:
        """That of a row of PAIR_INSTRUCTIONS."""
        return self.instruction.name


@dataclass(frozen=True, kw_only=True)
class WindowedDirect(PairedDirect):
    """A problem whose elements along a row of taps are multiplied in twos."""

    @property
    def kept(self) -> int:
        """Pairs for each column that registers hold beside sums: those that LLVM reads once for
        adjacent pixels, where they stand in a row."""
        (sources, _), column = channels(self.problem), self.slides[2]
        pairs = max(map(len, column.window)) * sources // self.neighbours
        if pairs > WRITTEN_OUT_PAIRS:
            pairs = UNROLLED
        between = column.step * sources  # elements of adjacent pixels, or every second one's pairs
        apart = between // self.neighbours if between % self.neighbours == 0 else between
        return max(0, min(apart, pairs - apart))

    def _most_columns(self, vectors: int) -> int:
        """Pixels whose sums registers hold beside a step's factors and the pairs kept."""
        free = self.processor.unit.registers - DIRECT.window_registers
        return max(1, min(super()._most_columns(vectors), free // (vectors + self.kept)))

    @property
    def _is_written_out(self) -> bool:
        """False: the pairs kept are counted."""
        return False

    def _step(self, products: float, loads: float, waits: float, latency: float) -> float:
        """Cycles of so many products and loads of registers of 64 bytes. Weights are few: they
        come from the first cache."""
        costs, each = REGISTER_TILES, DIRECT.started_window_instructions
        return super()._step(
            products * costs.started_fma_instructions / each,
            loads * costs.started_load_instructions / each,
            0,
            latency,
        )


def window_rules(problem: ConvProblem) -> dict[str, bool]:
    """What pairs of neighbours along a row of taps ask of a problem, and whether it holds."""
    column = spaced(problem)[-1].slide(problem.direction)
    offsets = sorted(read.offset for reads in column.window for read in reads)
    return {
        "of odd channels of a group in the source there is one group": problem.g == 1,
        "taps along a row read adjacent pixels where source channels are odd": column.phases == 1
        and all(after - one == 1 for one, after in pairwise(offsets)),
    }


@dataclass(frozen=True, kw_only=True)
class CpuDotDirect(CpuDirect):
    """A direct kernel by an instruction of pairs."""

    moved_products: int = DIRECT.least_moved_pair_products

    def rule(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that a problem breaks; empty where it fits."""
        if not isinstance(wgrad, EquivalentWgrad):
            return "it computes fwd and bwd_data"
        problem, row = wgrad.of, target.cpu.pair_instruction(wgrad.of.dtype)
        if row is None:
            return f"{target.name} multiplies no pairs of {problem.dtype}"
        sources, _ = channels(problem)
        rules = {
            **form_rules(problem),
            "its operands are of one type, and not multiplied in terms": problem.terms is None
            and len(set(wgrad.operand_dtypes)) == 1,
            "no op comes before its data are multiplied": not problem.compute
            and problem.operand_ops == (None, None),
            "result channels fill lanes": product_of(problem, target.cpu.unit.lanes) == "results",
        }
        broken = next((rule for rule, holds in rules.items() if not holds), "")
        if broken or sources % 2 == 0:
            return broken
        return next((rule for rule, holds in window_rules(problem).items() if not holds), "")

    def counted(self, wgrad: ConvProblem, problem: ConvProblem, target: Target) -> Direct:
        """A problem as its cycles are counted."""
        row = target.cpu.pair_instruction(problem.dtype)
        assert row is not None
        sources, _ = channels(problem)
        kind, product = (WindowedDirect, "windows") if sources % 2 else (PairedDirect, "pairs")
        return kind(problem=problem, product=product, processor=target.cpu, instruction=row)

    def comes_last(self, wgrad: ConvProblem, target: Target, one: Strategy) -> bool:
        """As other direct kernels; and pairs of a row of taps where pairs are slow."""
        assert isinstance(wgrad, EquivalentWgrad)
        tiling = direct_tiling(one)
        is_fast = target.cpu.is_fast(PAIR_INSTRUCTIONS[tiling.instruction])
        slow_windows = tiling.product == "windows" and not is_fast
        return slow_windows or super().comes_last(wgrad, target, one)

    def least_moved(self, problem: ConvProblem) -> int:
        """Products for each element, from which on it pays to move channels."""
        sources, _ = channels(problem)
        return DIRECT.least_moved_window_products if sources % 2 else self.moved_products


CPU_DOT_DIRECT = CpuDotDirect(
    name="cpu_dot_direct",
    description="forward and data gradient as a convolution, pairs of source channels multiplied",
    tile="columns of pixels x channels that a thread keeps in registers",
)
