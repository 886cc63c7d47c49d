# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel that adds the partial sums of split-K: how it is cut, and how long it takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.strategies.gpu.cost_constants import REDUCTION
from conv_compiler.strategies.schedule import CompilationInfo
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

DWORD = 4  # bytes of a partial sum


class Sums(NamedTuple):
    """How many partial sums a lane may have in flight, and whether each is extracted."""

    most: int
    extracted: bool = False

    def in_flight(self, split_k: int, width: int) -> int:
        """Parts a lane reads at once: as many as divide all evenly, where such a number is near."""
        most = min(split_k, self.most // width)
        evenly = most
        if self.extracted and width == 1:
            evenly = max(most, min(split_k, REDUCTION.extracted_in_flight_sums))
        even = range(evenly, -(-most // 2) - 1, -1)
        return next((parts for parts in even if split_k % parts == 0), most)

    def is_even(self, split_k: int, width: int) -> bool:
        """Whether the parts read at once divide all evenly."""
        return split_k % self.in_flight(split_k, width) == 0


def lane_width(problem: ConvProblem, target: Target, split_k: int, sums: Sums) -> int:
    """Adjacent weights that a lane sums: several where there are more than enough for the chip.

    Where partial sums are extracted, only widths that divide the parts evenly count, if any does.
    """
    weights, units = math.prod(problem.weight_shape), rank_facts(target).units
    inner = problem.shape(problem.layout_row.grouped.weight)[-1]
    enough = units * REDUCTION.least_waves * target.subgroup_size
    fitting = [w for w in REDUCTION.adjacent_weights if inner % w == 0 and weights // w >= enough]
    if sums.extracted and any(sums.is_even(split_k, w) for w in (*fitting, 1)):
        fitting = [w for w in fitting if sums.is_even(split_k, w)]
    return max(fitting, default=1)


def sums_of_few(problem: ConvProblem, target: Target) -> Sums:
    """Partial sums a lane may have in flight, where few weights leave it the registers."""
    return Sums(
        REDUCTION.few_weights_in_flight_sums
        if _has_few_weights(problem, target)
        else REDUCTION.in_flight_sums
    )


def _has_few_weights(problem: ConvProblem, target: Target) -> bool:
    chip = rank_facts(target)
    waves = math.prod(problem.weight_shape) / target.subgroup_size
    # Of integers LLVM waits for each part by itself: 41 us modelled for 256 parts of 1296 weights.
    return (
        waves <= REDUCTION.few_waves * chip.units * chip.simds and not problem.data_type.is_integer
    )


def sums_of_tiling(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> Sums:
    """Partial sums of a GEMM that a lane may have in flight.

    Where there are few weights, these are all parts if that leaves no loop, else fewer.
    """
    extracted = tiling.taps_in_rows or tiling.merged_groups > 1
    most = REDUCTION.in_flight_sums
    if target.backend == "rocm" and _has_few_weights(problem, target):
        most = (
            REDUCTION.few_weights_in_flight_sums
            if split_k <= REDUCTION.few_weights_in_flight_sums
            else REDUCTION.few_weights_loop_sums
        )
    return Sums(most, extracted)


def wave_tile(shape: tuple[int, ...], lanes: int, width: int) -> tuple[int, ...]:
    """The tile of a wave in a result of this shape; lanes fill the innermost axes first.

    A lane has `width` of the innermost axis. An axis longer than the lanes left is cut evenly.
    """
    tile: list[int] = []
    for extent in (shape[-1] // width, *reversed(shape[:-1])):
        tile.append(-(-extent // -(-extent // lanes)))
        lanes = max(1, lanes // tile[-1])
    tile[0] *= width
    return tuple(reversed(tile))


def reduction_info(
    problem: ConvProblem, target: Target, split_k: int, sums: Sums
) -> CompilationInfo:
    """How IREE's TileAndFuse pipeline compiles the reduction: one wave a workgroup.

    IREE's own choice gives a lane four weights and a few parts at a time. With few weights that
    makes too few waves for the chip, and each waits for memory most of its time.
    """
    shape = tuple(problem.shape(problem.layout_row.grouped.weight))
    width = lane_width(problem, target, split_k, sums)
    levels = {
        "reduction": [*(0 for _ in shape), sums.in_flight(split_k, width)],
        "thread": [*(1 for _ in shape[1:]), width, 0],
        "workgroup": [*wave_tile(shape, target.subgroup_size, width), 0],
    }
    config = ", ".join(f"{name} = {sizes}" for name, sizes in levels.items())
    return CompilationInfo(
        lowering_config=f"#iree_gpu.lowering_config<{{{config}}}>",
        pipeline="#iree_gpu.pipeline<TileAndFuse>",
        workgroup_size=(target.subgroup_size, 1, 1),
        subgroup_size=target.subgroup_size,
    )


@lru_cache(maxsize=1024)
def reduction_seconds(problem: ConvProblem, target: Target, split_k: int, sums: Sums) -> float:
    """Modelled seconds of the dispatch that adds the partial sums."""
    weights, lanes = math.prod(problem.weight_shape), target.subgroup_size
    width = lane_width(problem, target, split_k, sums)
    parts = sums.in_flight(split_k, width)
    at_once = parts * width
    counts = KernelCounts(
        body=(
            Counts(
                loads=parts,
                load_dwords=at_once,
                line_bytes=at_once * DWORD * lanes,
                valu=2 * at_once,
            ),
        ),
        iterations=split_k / parts,
        outside=Counts(stores=1, store_dwords=width, loads=1),
        source="predicted",
    )
    partials = split_k * weights * DWORD
    launch = Launch(
        workgroups=-(-weights // (lanes * width)),
        waves=1,
        vgprs=sums.most + REDUCTION.other_registers,
        read_bytes=partials,
        written_bytes=weights * problem.result_type.bytes,
        warm_bytes=partials,
    )
    return estimate(counts, launch, target, rank_facts(target)).seconds


def roles_of(
    problem: ConvProblem, target: Target, strategy: Strategy, main: CompilationInfo
) -> dict[str, CompilationInfo]:
    """Configurations by role: the contraction's, and on AMD the reduction's."""
    if target.backend != "rocm" or strategy.split_k == 1:
        return {"contraction": main}
    assert isinstance(strategy.tiling, GpuTiling)
    sums = sums_of_tiling(problem, target, strategy.tiling, strategy.split_k)
    reduction = reduction_info(problem, target, strategy.split_k, sums)
    return {"contraction": main, "reduction": reduction}
