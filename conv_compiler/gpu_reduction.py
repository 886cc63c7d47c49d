"""The kernel that sums the partial results of split-K: how it is cut, and how long it takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.model.counts import Counts, KernelCounts
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.schedule import CompilationInfo

if TYPE_CHECKING:
    from conv_compiler.problem import ConvProblem
    from conv_compiler.strategy import GpuTiling
    from conv_compiler.targets import Target

# Partial sums a lane has in flight. They lie a weight tensor apart, so nothing but their number
# hides how far memory is; more of them cost registers that waves beside it would have.
SUMS_IN_FLIGHT = 24
OTHER_VGPRS = 24
# A last round of fewer parts is waited for part by part, so a third more may be in flight where
# that leaves none.
MORE = 3
# Where weights are so few that each SIMD has FEW_WAVES at most, registers are not missed: all parts
# of a sum may then be in flight at once, or, where these are more, SUMS_IN_LOOP in each round: of
# 76 the compiler copies some, of 101 it spills them.
SUMS_ALONE, SUMS_IN_LOOP, FEW_WAVES = 128, 40, 2
DWORD = 4
# Weights side by side that a lane may take, where the waves left give every unit so many.
WIDTHS = (4, 2)
WAVES_PER_UNIT = 4


def lane_width(problem: ConvProblem, target: Target) -> int:
    """Weights a lane sums: several, read at once, where there are more than enough for the chip."""
    weights, units = math.prod(problem.weight_shape), rank_facts(target).units
    inner = problem.shape(problem.layout_row.grouped.weight)[-1]
    enough = units * WAVES_PER_UNIT * target.subgroup_size
    return next((w for w in WIDTHS if inner % w == 0 and weights // w >= enough), 1)


def sums_of_few(problem: ConvProblem, target: Target) -> int:
    """Partial sums a lane may have in flight, where few weights leave it the registers."""
    return SUMS_ALONE if _has_few_weights(problem, target) else SUMS_IN_FLIGHT


def _has_few_weights(problem: ConvProblem, target: Target) -> bool:
    chip = rank_facts(target)
    waves = math.prod(problem.weight_shape) / target.subgroup_size
    # Of integers LLVM waits for each part by itself: 41 us modelled for 256 parts of 1296 weights.
    return waves <= FEW_WAVES * chip.units * chip.simds and not problem.data_type.is_integer


def sums_of_tiling(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> int:
    """Partial sums of a GEMM that a lane may have in flight: all of few weights, where that leaves
    no loop. In two rounds of 112 they took 8.0 us, where 24 at a time take 4.0."""
    if target.backend != "rocm" or not _has_few_weights(problem, target):
        return SUMS_IN_FLIGHT
    return SUMS_ALONE if split_k <= SUMS_ALONE else SUMS_IN_LOOP


def in_flight(split_k: int, width: int, sums: int = SUMS_IN_FLIGHT) -> int:
    """Parts a lane reads at once: as many as divide them evenly, where such a number is near."""
    most = min(split_k, sums // width)
    near = (*range(most, -(-most // 2) - 1, -1), *range(most + 1, most + most // MORE + 1))
    return next((parts for parts in near if split_k % parts == 0), most)


def wave_tile(shape: tuple[int, ...], lanes: int, width: int) -> tuple[int, ...]:
    """What a wave computes of a result of this shape, innermost axes first.

    A lane has `width` of the innermost axis; an axis longer than the lanes left is cut evenly.
    """
    tile: list[int] = []
    for extent in (shape[-1] // width, *reversed(shape[:-1])):
        tile.append(-(-extent // -(-extent // lanes)))
        lanes = max(1, lanes // tile[-1])
    tile[0] *= width
    return tuple(reversed(tile))


def reduction_info(
    problem: ConvProblem, target: Target, split_k: int, sums: int = SUMS_IN_FLIGHT
) -> CompilationInfo:
    """How IREE's TileAndFuse pipeline is to compile the sum: a wave a workgroup.

    A lane has `sums` partial sums in flight at most.

    IREE's own choice gives a lane four weights and a few parts at a time: where weights are few,
    too few waves for the chip, each waiting for memory most of its time.
    """
    shape = tuple(problem.shape(problem.layout_row.grouped.weight))
    width = lane_width(problem, target)
    levels = {
        "reduction": [*(0 for _ in shape), in_flight(split_k, width, sums)],
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
def reduction_seconds(
    problem: ConvProblem, target: Target, split_k: int, sums_in_flight: int = SUMS_IN_FLIGHT
) -> float:
    """Modelled seconds of the dispatch that sums the partial results."""
    weights, lanes = math.prod(problem.weight_shape), target.subgroup_size
    width = lane_width(problem, target)
    parts = in_flight(split_k, width, sums_in_flight)
    sums = parts * width
    counts = KernelCounts(
        body=(
            Counts(loads=parts, load_dwords=sums, line_bytes=sums * DWORD * lanes, valu=2 * sums),
        ),
        trips=split_k / parts,
        outside=Counts(stores=1, store_dwords=width, loads=1),
        source="predicted",
    )
    partials = split_k * weights * DWORD
    launch = Launch(
        workgroups=-(-weights // (lanes * width)),
        waves=1,
        vgprs=sums_in_flight + OTHER_VGPRS,
        read_bytes=partials,
        written_bytes=weights * problem.result_type.bytes,
        warm_bytes=partials,
    )
    return estimate(counts, launch, target, rank_facts(target)).seconds
