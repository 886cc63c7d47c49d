# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the strategies of CPUs have in common: their tile, their splits and their promise, and how
kernels that a pass writes are chosen and lowered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.split_k import filled_parts
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.kind import Promises, StrategyKind
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy, Tiling
from conv_compiler.targets.host import STACK_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target
    from conv_compiler.targets.host import PairInstruction


def fastest(
    name: str, found: Iterable[tuple[float, tuple[int, ...], Tiling]], tile: tuple[int, ...]
) -> tuple[Strategy, ...]:
    """Of tilings with their cycles and what is preferred of equal ones, the strategy with the
    fewest cycles; of a tile that is asked for where that is not empty."""
    several = (
        (cycles, preference, Strategy(name=name, tiling=tiling, split_k=1))
        for cycles, preference, tiling in found
    )
    fitting = [entry for entry in several if tile in ((), entry[2].tile)]
    return tuple(one for *_, one in sorted(fitting, key=lambda entry: entry[:2])[:1])


def rounding_of(problem: ConvProblem, target: Target) -> str:
    """The instruction that rounds sums of f32 to the result's type; empty where there is none."""
    is_f32 = problem.accumulator_type.name == "f32"
    return target.cpu.rounding(problem.result_type.name) if is_f32 else ""


def pairs(problem: ConvProblem, target: Target) -> PairInstruction | None:
    """The instruction that multiplies two source channels at once, where there is a fast one."""
    sources, _ = channels(problem)
    if sources % 2 or problem.compute or problem.operand_ops != (None, None):
        return None
    return target.cpu.fast_pairs(problem.dtype)


def vector_schedule(*roles: str, on_stack: bool = False) -> Schedule:
    """The pipeline of kernels of vectors that a pass writes, by their roles.

    What they copy to a thread's stack, and tiles of sums on their way to registers, is at most a
    power of two.
    """
    info = CompilationInfo(
        lowering_config="#iree_cpu.lowering_config<>",
        pipeline=read_pipeline("cpu_vector").steps,
    )
    limit = f"--iree-llvmcpu-stack-allocation-limit={1 << (STACK_BYTES - 1).bit_length()}"
    return Schedule(roles=dict.fromkeys(roles, info), flags=(limit,) if on_stack else ())


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
