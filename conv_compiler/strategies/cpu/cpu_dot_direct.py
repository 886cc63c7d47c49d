# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `cpu_dot_direct`: forward passes and data gradients as a convolution, two adjacent
source channels multiplied at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import DIRECT
from conv_compiler.strategies.cpu.cpu_direct import CpuDirect, form_rules, product_of
from conv_compiler.strategies.cpu.direct_tiles import Direct

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
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
            "the channels of a group in the source are even": sources % 2 == 0,
            "result channels fill lanes": product_of(problem, target.cpu.unit.lanes) == "results",
        }
        return next((rule for rule, holds in rules.items() if not holds), "")

    def counted(self, wgrad: ConvProblem, problem: ConvProblem, target: Target) -> Direct:
        """A problem as its cycles are counted."""
        row = target.cpu.pair_instruction(problem.dtype)
        assert row is not None
        return PairedDirect(problem=problem, product="pairs", processor=target.cpu, instruction=row)


CPU_DOT_DIRECT = CpuDotDirect(
    name="cpu_dot_direct",
    description="forward and data gradient as a convolution, pairs of source channels multiplied",
    tile="columns of pixels x channels that a thread keeps in registers",
)
