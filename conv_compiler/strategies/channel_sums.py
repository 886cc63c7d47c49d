# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `channel_sums`: the gradient of a bias, which multiplies nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.ir.attributes import SUM_ROLES
from conv_compiler.problem.canonical import sums_of
from conv_compiler.problem.channel_sums import LevelLoops, axes_of_sums, cuts_of, levels_of
from conv_compiler.strategies.cpu_tilings import SumTiling
from conv_compiler.strategies.gpu.split_k_reduction import wave_tile
from conv_compiler.strategies.kind import GPU_BACKENDS, Lowering, OnePart
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.sum_levels import LOAD_BYTES, levels

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Vectors of sums that a CPU's thread keeps, and elements that a GPU's lane has in flight.
CPU_VECTORS = 8
IN_FLIGHT = 16
# Below so many a rest costs less than more iterations.
LEAST_IN_FLIGHT = 4


@dataclass(frozen=True, kw_only=True)
class ChannelSums(OnePart):
    """The one kind for sums of channels, and for nothing else.

    One part: levels of sums stand in the place of split-K.
    """

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """The levels for the machine."""
        problem = sums_of(wgrad)
        if problem is None:
            return ()
        return (Strategy(name=self.name, tiling=SumTiling(levels=levels(problem, target))),)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """A kernel a level, on vectors of channels or of pixels."""
        from conv_compiler.passes.channel_sums import ChannelSums as Cut
        from conv_compiler.passes.emulate_f8 import EmulateF8

        problem = sums_of(wgrad)
        assert problem is not None
        assert isinstance(one.tiling, SumTiling)
        passes: tuple[Pass, ...] = (EmulateF8(),) if problem.data_type.is_f8 else ()
        if not one.tiling.levels:
            return Lowering(passes=passes, schedule=Schedule(roles={}))
        every = levels_of(axes_of_sums(problem), cuts_of(one.tiling.levels))
        roles = {}
        for role, (loops, _) in zip(SUM_ROLES, every, strict=False):
            if info := _info(problem, target, loops, is_first=role == SUM_ROLES[0]):
                roles[role] = info
        return Lowering(
            passes=(Cut(levels=one.tiling.levels), *passes), schedule=Schedule(roles=roles)
        )

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """That the problem multiplies something."""
        return "it computes bwd_bias" if sums_of(wgrad) is None else ""

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """As of one tile: the rule has nothing to split."""
        return 1, 1


def _info(
    problem: ConvProblem, target: Target, loops: LevelLoops, is_first: bool
) -> CompilationInfo | None:
    """The configuration of a level; None leaves it to IREE, as where a single sum is left.

    So it is on NVIDIA chips.
    """
    if loops.parallel == (1,) or not loops.summed or target.backend == "cuda":
        return None
    if target.is_gpu:
        return _of_gpu(problem, target, loops, is_first)
    return _of_cpu(target, loops)


def _of_cpu(target: Target, loops: LevelLoops) -> CompilationInfo:
    """A workgroup has all of the innermost loop, and one iteration of the others."""
    lanes = target.cpu.unit.lanes
    *outer, inner = loops.parallel
    vectors = min(CPU_VECTORS * lanes, -(-inner // lanes) * lanes)
    share = inner if outer else vectors
    zeros = [0] * len(loops.summed)
    rows = {
        "distribution": [*(1 for _ in outer), share, *zeros],
        "cache_reduction": [*(0 for _ in loops.parallel), *zeros],
        "vector_common_parallel": [*(1 for _ in outer), min(vectors, inner), *zeros],
        "vector_reduction": [*(0 for _ in loops.parallel), *(1 for _ in zeros)],
    }
    return CompilationInfo(
        lowering_config=f"#iree_cpu.lowering_config<{_texts(rows)}>",
        pipeline=read_pipeline("cpu_lin").steps,
    )


def _of_gpu(
    problem: ConvProblem, target: Target, loops: LevelLoops, is_first: bool
) -> CompilationInfo:
    """A wave a workgroup; a lane has neighbours of the innermost loop, as many as one load."""
    lanes, shape = target.subgroup_size, loops.parallel
    size = problem.data_type.bytes if is_first else problem.accumulator_type.bytes
    # Where the innermost loop is summed, a lane of the result reads along it.
    width = max(w for w in (1, 2, 4, 8, 16) if w * size <= LOAD_BYTES and shape[-1] % w == 0)
    tile = wave_tile(shape, lanes, width)
    *outer, last = loops.summed
    rows = {
        "reduction": [*(0 for _ in shape), *(1 for _ in outer), _in_flight(last)],
        "thread": [*(1 for _ in shape[1:]), width, *(0 for _ in loops.summed)],
        "workgroup": [*tile, *(0 for _ in loops.summed)],
    }
    return CompilationInfo(
        lowering_config=f"#iree_gpu.lowering_config<{{{_texts(rows)}}}>",
        pipeline="#iree_gpu.pipeline<TileAndFuse>",
        workgroup_size=(lanes, 1, 1),
        subgroup_size=lanes,
    )


def _in_flight(summed: int) -> int:
    """Elements of an iteration: a divisor, for the tests of a rest take more registers than there
    are; as many as may be where the divisors are few."""
    found = max(own for own in range(1, min(summed, IN_FLIGHT) + 1) if summed % own == 0)
    return found if found >= LEAST_IN_FLIGHT else min(summed, IN_FLIGHT)


def _texts(rows: dict[str, Sequence[int]] | dict[str, list[int]]) -> str:
    return ", ".join(f"{name} = {list(sizes)}" for name, sizes in rows.items())


CHANNEL_SUMS = ChannelSums(
    name="channel_sums",
    description="the gradient of a bias: sums over pixels in levels, nothing multiplied",
    tile="none",
    backends=(*GPU_BACKENDS, "llvm-cpu"),
    normalise="channel_sums",
    sums_alone=True,
)
