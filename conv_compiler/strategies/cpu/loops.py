# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU strategies: when each is offered, the passes that shape its payload, and its schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.cpu.cost_constants import LANES
from conv_compiler.strategies.cpu.cpu_kind import CpuKind, cpu_tiling
from conv_compiler.strategies.cpu.register_tiles import best_tiling, largest_divisor, loop_sizes
from conv_compiler.strategies.cpu.split_k import even_splits, part_lengths, split_parts
from conv_compiler.strategies.cpu.workgroup_shares import cache_tiles, shares
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.f8_emulation import emulation_passes
from conv_compiler.strategies.kind import Lowering
from conv_compiler.strategies.pipeline_file import read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# The script of `mlir/normalise/` that runs the passes.
NORMALISE = "cpu_lin"


def lin_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Lanes along c or k of one group, the cheaper first.

    Offered where one of them has enough channels to fill lanes (`cost_constants.Lanes`), or where
    there are no groups to put in the lanes instead. Never where c = k = 1 or a sum has one product.
    """
    if lin_refusal(problem, target):
        return ()
    unit = target.cpu.unit
    both = (best_tiling(problem, lanes, unit, tile) for lanes in "ck")
    found = [tiling for tiling in both if tiling]
    ranked = sorted(found, key=lambda costed: costed.cycles)
    return tuple(Strategy(name="cpu_lin", tiling=one.tiling) for one in ranked)


def grouped_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Lanes along the groups, for grouped problems of few channels and depthwise ones."""
    if grouped_refusal(problem, target):
        return ()
    found = best_tiling(problem, "g", target.cpu.unit, tile)
    return (Strategy(name="cpu_grouped", tiling=found.tiling),) if found else ()


def lin_refusal(problem: ConvProblem, target: Target) -> str:
    """Why there are no `lin_candidates`; empty where there are."""
    if max(problem.c, problem.k) < LANES.least_vector_channels and problem.g > 1:
        return f"groups of {problem.c} and {problem.k} channels leave lanes empty"
    return _sum_refusal(problem, "ck")


def grouped_refusal(problem: ConvProblem, target: Target) -> str:
    """Why there are no `grouped_candidates`; empty where there are."""
    if max(problem.c, problem.k) >= LANES.least_vector_channels:
        return f"a group has {problem.c} and {problem.k} channels, which fill lanes themselves"
    return _sum_refusal(problem, "g")


def _sum_refusal(problem: ConvProblem, lanes: str) -> str:
    """Why no tile has one of these loops in its lanes."""
    sizes = loop_sizes(problem)
    if all(sizes[loop] == 1 for loop in lanes):
        return f"{' and '.join(lanes)} of one: nothing for the lanes"
    return "" if problem.gemm_k > 1 else "a sum has one product"


def loops_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """The contraction as the compiler lowers it unasked; always possible, seldom fast."""
    return (Strategy(name="cpu_loops", tiling=CpuTiling()),)


def splits(problem: ConvProblem, target: Target, tiling: CpuTiling) -> list[int]:
    """The parts of gemm_k by which the least is moved, of those that divide without adding zeros.

    Where the weights alone make too few workgroups, parts make up for them.
    """
    if not tiling.loops:
        return [1]
    cores = target.cpu.cores
    return [min(even_splits(problem), key=lambda parts: shares(problem, tiling, parts, cores).cost)]


def padded_loops(problem: ConvProblem, strategy: Strategy) -> dict[str, int]:
    """Loops whose tile or number of parts does not divide them, with the size they get."""
    tiling = strategy.tiling
    assert isinstance(tiling, CpuTiling)
    sizes = loop_sizes(problem)
    wanted = {
        loop: -(-sizes[loop] // tile) * tile
        for loop, tile in zip(tiling.loops, tiling.vector_parallel, strict=True)
        if tile
    }
    split = split_parts(problem, strategy.split_k)
    wanted |= {p: size for p, (_, size) in split.items()}
    for p, length in part_lengths(problem, tiling, strategy.split_k).items():
        wanted[p] = split[p][0] * length if p in split else length
    return {loop: size for loop, size in wanted.items() if size != sizes[loop]}


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload in the form of a CPU kernel, in a dispatch of its own."""
    from conv_compiler.passes.form_dispatch import FormDispatch

    shaped = shaping_passes(problem, strategy)
    return (*emulation_passes(problem, target), *shaped, FormDispatch())


def shaping_passes(
    problem: ConvProblem, strategy: Strategy, *, as_they_lie: bool = False
) -> tuple[Pass, ...]:
    """No unit loops, whole tiles, gemm_k in parts; lanes innermost in memory or `as_they_lie`."""
    from conv_compiler.passes.drop_unit_loops import DropUnitLoops
    from conv_compiler.passes.order_loops import OrderLoops
    from conv_compiler.passes.pad_loops import PadLoops
    from conv_compiler.passes.split_reduction import SplitReduction

    tiling = strategy.tiling
    assert isinstance(tiling, CpuTiling)
    out: list[Pass] = [DropUnitLoops()]
    if padded := padded_loops(problem, strategy):
        out.append(PadLoops(loops=tuple(padded), sizes=tuple(padded.values())))
    if tiling.loops:
        parallel = tuple(
            p for p, tile in zip(tiling.loops, tiling.vector_parallel, strict=True) if tile
        )
        out.append(OrderLoops(loops=parallel, as_it_lies=as_they_lie))
    if split := split_parts(problem, strategy.split_k):
        parts = tuple(n for n, _ in split.values())
        out += [SplitReduction(loops=tuple(split), parts=parts), DropUnitLoops()]
    return tuple(out)


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """The tile sizes and the pipeline of `mlir/cpu_lin.pipeline`; nothing for `cpu_loops`."""
    tiling = strategy.tiling
    assert isinstance(tiling, CpuTiling)
    if not tiling.loops:
        return Schedule(roles={})
    split = split_parts(problem, strategy.split_k)
    vector = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
    lengths = part_lengths(problem, tiling, strategy.split_k)
    share = shares(problem, tiling, strategy.split_k, target.cpu.cores).share
    share |= {p: t for p, t in zip(tiling.loops, tiling.distribution, strict=False) if t}
    cache = cache_tiles(problem, lengths, share)
    cache |= {
        p: largest_divisor(lengths[p], t)
        for p, t in zip(tiling.loops, tiling.cache, strict=False)
        if t and p in lengths
    }
    columns = [
        *((1, 0, 1, 0) for parts, _ in split.values() if parts > 1),
        *((share[p], 0, vector[p], 0) for p in vector),
        *((0, cache[p], 0, 1) for p in lengths),
    ]
    levels = ("distribution", "cache_reduction", "vector_common_parallel", "vector_reduction")
    texts = (
        f"{level} = {list(numbers)}"
        for level, numbers in zip(levels, zip(*columns, strict=True), strict=True)
    )
    info = CompilationInfo(
        lowering_config=f"#iree_cpu.lowering_config<{', '.join(texts)}>",
        pipeline=read_pipeline("cpu_lin").steps,
    )
    return Schedule(roles={"contraction": info})


@dataclass(frozen=True, kw_only=True)
class LoopsKind(CpuKind):
    """A strategy that IREE tiles: its kernel is a loop nest of vectors."""

    normalise: str = NORMALISE

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The payload in the form of a CPU kernel, and the pipeline that lowers it."""
        return Lowering(passes=passes(wgrad, target, one), schedule=schedule(wgrad, target, one))

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """The split-K factor by which the least is moved."""
        return splits(wgrad, target, cpu_tiling(one))
