# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The depthwise strategy: the tilings that fit, their order, passes and schedule.

With one channel a group any chip computes the gradient faster than its memory brings the operands.
So the kernel (`passes/depthwise.py`) reads each operand about once and keeps all else in registers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.facts import rank_facts
from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.strategies.gpu.cost_constants import DEPTHWISE_POWERS as POWERS
from conv_compiler.strategies.gpu.cost_constants import DEPTHWISE_SEARCH
from conv_compiler.strategies.gpu.depthwise_cost import (
    blocks,
    predict,
    row_axis,
    strip_rounds,
    vgprs,
)
from conv_compiler.strategies.gpu.depthwise_rank import order
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.split_k_reduction import reduction_info, sums_of_few
from conv_compiler.strategies.kind import Lowering, StrategyKind
from conv_compiler.strategies.pipeline_file import behind_contraction, read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import DepthwiseTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

DTYPES = ("f16", "bf16", "f32", "i8")
# Registers that an instruction of any chip can name.
MOST_VGPRS = 256


class Ranked(NamedTuple):
    """A tiling with a split-K factor; what is least for the fastest comes first."""

    order: float
    split_k: int
    tiling: DepthwiseTiling


def fits(problem: ConvProblem, target: Target) -> bool:
    """Whether groups of one channel are adjacent in memory, in a type that vector units multiply.

    Elements are counted in 32 bits, and on AMD chips read by buffer instructions.
    """
    row = problem.layout_row.grouped
    largest = max(math.prod(problem.input_shape), math.prod(problem.output_shape))
    return (
        problem.k == problem.c == 1 < min(problem.g, math.prod(problem.filter))
        and problem.direction == "bwd_weight"
        and row.input.endswith("GC")
        and row.output.endswith("GK")
        and set(problem.operand_dtypes) <= set(DTYPES)
        and len(set(problem.operand_dtypes)) == 1
        and largest * problem.data_type.bytes < BUFFER_BYTES
        and target.is_gpu
    )


def _divisors(value: int, most: int) -> list[int]:
    return [n for n in range(1, min(value, most) + 1) if value % n == 0]


def _lanes(vectors: int, vector_bytes: int, threads: int) -> Iterator[int]:
    """Adjacent threads along the groups: all of them, or even shares that read whole lines."""
    least = min(vectors, max(1, DEPTHWISE_SEARCH.least_line_bytes // vector_bytes))
    shares = [n for n in range(least, min(vectors, threads) + 1) if vectors % n == 0]
    if not shares:
        shares = [-(-vectors // -(-vectors // threads))]
    # The narrowest, which makes the fewest parts, and the widest.
    yield from dict.fromkeys((shares[0], shares[-1]))


def tilings(problem: ConvProblem, target: Target) -> Iterator[DepthwiseTiling]:
    """Every tiling whose sums and window the registers and the LDS hold."""
    registers = min(MOST_VGPRS, target.vgprs_per_lane)
    for tiling in _shapes(problem, target):
        if vgprs(problem, tiling) <= registers:
            yield tiling


def _shapes(problem: ConvProblem, target: Target) -> Iterator[DepthwiseTiling]:
    """Every tiling whose sums the LDS holds."""
    taps, size = math.prod(problem.filter), problem.data_type.bytes
    strips = tuple(_strips(problem, target))
    for vector in DEPTHWISE_SEARCH.thread_channels:
        too_many = taps * vector > DEPTHWISE_SEARCH.most_sums
        if problem.g % vector or too_many or vector * size > 4 * DWORD:
            continue
        for strip, threads in itertools.product(strips, DEPTHWISE_SEARCH.workgroup_threads):
            if taps * vector * DWORD * threads > target.lds_bytes:
                continue
            for lanes in _lanes(problem.g // vector, vector * size, threads):
                yield DepthwiseTiling(
                    vector=vector,
                    columns=strip.columns,
                    rows=strip.rows,
                    unroll=strip.unroll,
                    lanes=lanes,
                    threads=threads,
                )


class _Strip(NamedTuple):
    """A thread's strip of output pixels: columns, rows, and the rows of an iteration."""

    columns: int
    rows: int
    unroll: int


def _strips(problem: ConvProblem, target: Target) -> Iterator[_Strip]:
    """The strips that divide the output, the larger ones of them."""
    across, rows = problem.out_image[-1], row_axis(problem).outputs
    columns = _divisors(across, DEPTHWISE_SEARCH.most_columns)
    if columns == [1] and across > 1:
        columns = [1, DEPTHWISE_SEARCH.uneven_columns]
    most = DEPTHWISE_SEARCH.nvidia_rows if target.backend == "cuda" else rows
    for width, high in itertools.product(columns[-3:], _divisors(rows, most)[-6:]):
        steps = _divisors(high, DEPTHWISE_SEARCH.most_unrolled_rows)
        for unroll in dict.fromkeys((*steps[:2], steps[-1])):
            yield _Strip(width, high, unroll)


def filled_parts(problem: ConvProblem, tiling: DepthwiseTiling, split_k: int) -> int:
    """The parts, of so many, that have strips: a part has whole rounds of them."""
    rounds = strip_rounds(problem, tiling)
    return -(-rounds // -(-rounds // split_k))


def splits(
    problem: ConvProblem,
    target: Target,
    tiling: DepthwiseTiling,
    per_unit: tuple[int, ...] = DEPTHWISE_SEARCH.tried_workgroups,
) -> list[int]:
    """Split-K factors worth trying: those that give each unit so many workgroups, cut evenly."""
    rounds, a_part = strip_rounds(problem, tiling), blocks(problem, tiling)
    found = []
    for workgroups in per_unit:
        most = rank_facts(target).units * workgroups // a_part
        most = max(1, min(most, rounds, DEPTHWISE_SEARCH.most_parts, problem.gemm_k))
        found.append(-(-rounds // -(-rounds // most)))
    return list(dict.fromkeys(found))


def candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings and split-K factors, fastest first; those with the strip `tile`, where one is given.

    The performance model puts them in order; on NVIDIA chips, of elements of two bytes, powers that
    are fitted to times. By the model all tilings get a first look with one factor, and the fastest
    of them are modelled with all.
    """
    if not fits(problem, target):
        return ()
    search = DEPTHWISE_SEARCH
    is_timed = target.backend == "cuda" and problem.data_type.bytes == POWERS.element_bytes
    rank = order if is_timed else predict

    def best(tiling: DepthwiseTiling, per_unit: tuple[int, ...]) -> Ranked:
        several = splits(problem, target, tiling, per_unit)
        if split_k:
            several = [filled_parts(problem, tiling, split_k)]
        return min(Ranked(rank(problem, target, tiling, n), n, tiling) for n in several)

    rough: dict[object, Ranked] = {}
    for tiling in tilings(problem, target):
        if tile in ((), (tiling.columns, tiling.rows, tiling.vector)):
            entry = best(tiling, search.timed_workgroups if is_timed else search.first_workgroups)
            strip = (tiling.vector, tiling.columns, tiling.rows, tiling.unroll, tiling.lanes)
            if strip not in rough or entry.order < rough[strip].order:
                rough[strip] = entry
    found = sorted(rough.values(), key=_order)[: search.modelled_tilings]
    if not is_timed:
        found = [best(entry.tiling, search.tried_workgroups) for entry in found]
        found = sorted(found, key=_order)[: search.most_tilings]
        if target.backend == "cuda":
            found = [best(entry.tiling, search.nvidia_workgroups) for entry in found]
    return tuple(
        Strategy(name="depthwise", tiling=entry.tiling, split_k=entry.split_k)
        for entry in found[: search.most_tilings]
    )


def _order(entry: Ranked) -> float:
    return entry.order


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a kernel of vectors."""
    from conv_compiler.passes.depthwise import Depthwise

    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    return (Depthwise(**asdict(tiling), split_k=strategy.split_k),)


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """Pipeline of a kernel of vectors."""
    tiling = strategy.tiling
    assert isinstance(tiling, DepthwiseTiling)
    pipeline = read_pipeline("gpu_depthwise", {target.backend: True})
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline.steps,
        workgroup_size=(tiling.threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    roles = {"contraction": info}
    if strategy.split_k > 1:
        sums = sums_of_few(problem, target)
        roles["reduction"] = reduction_info(problem, target, strategy.split_k, sums)
    return Schedule(roles=roles, behind=behind_contraction(pipeline))


def _tiling(one: Strategy) -> DepthwiseTiling:
    assert isinstance(one.tiling, DepthwiseTiling)
    return one.tiling


@dataclass(frozen=True, kw_only=True)
class Depthwise(StrategyKind):
    """A kernel that a pass writes (`passes/depthwise.py`)."""

    normalise: str = "depthwise"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Strips of output pixels that fit, fastest first."""
        return candidates(wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline behind it."""
        return Lowering(
            passes=passes(wgrad, target, one),
            schedule=schedule(wgrad, target, one),
        )

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return splits(wgrad, target, _tiling(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that hold a product: each part is whole strips."""
        return filled_parts(wgrad, _tiling(one), split_k)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by the performance model, on NVIDIA chips at the factor that it has fastest."""
        tiling, factors = _tiling(one), [one.split_k]
        if target.backend == "cuda":
            factors = splits(wgrad, target, tiling)
        return min(predict(wgrad, target, tiling, factor) for factor in factors)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = _tiling(one)
        return blocks(wgrad, tiling), strip_rounds(wgrad, tiling)


DEPTHWISE = Depthwise(
    name="depthwise",
    description="windows and sums in registers, vector fma; groups of one channel",
    tile="columns x rows x groups of a thread's strip of output pixels",
    backends=("rocm", "cuda"),
)
