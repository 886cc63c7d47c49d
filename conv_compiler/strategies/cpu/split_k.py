# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which loops split-K cuts on the CPU: batch and pixels, with the fewest zeros added."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.build.bwd_weight import OUTPUT_LOOPS
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.cpu.cost_constants import SPLITS
from conv_compiler.strategies.cpu.register_tiles import loop_sizes
from conv_compiler.targets.host import TILE_INSTRUCTIONS, TILE_ROWS

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.cpu_tilings import CpuTiling


class DeepLoop(NamedTuple):
    """The summed loop of which an AMX instruction sums `step` iterations; "" for none."""

    loop: str
    step: int


NO_DEEP_LOOP = DeepLoop("", 1)


def even_splits(problem: ConvProblem) -> list[int]:
    """The split-K factors that add no zeros; 1 first."""
    return [
        1,
        *(
            parts
            for parts in SPLITS.tried_parts
            if parts * SPLITS.least_products <= problem.gemm_k
            and padded_elements(problem, parts) == problem.gemm_k
        ),
    ]


def _factorings(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as an ordered product of `count` factors."""
    if count == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in _factorings(number // first, count - 1):
                yield (first, *rest)


@lru_cache(maxsize=256)
def split_parts(problem: ConvProblem, split_k: int) -> dict[str, tuple[int, int]]:
    """Parts and padded length of each summed loop that is cut, by loop.

    `split_k` is factored over batch and pixels so that the fewest zeros are added, outer loops cut
    first. At least one summed loop keeps two iterations a part.
    """
    if split_k == 1:
        return {}
    sizes = loop_sizes(problem)
    loops = [p for p in ("n", *OUTPUT_LOOPS[-problem.ndim :]) if sizes[p] > 1]
    if not loops:
        raise UnsupportedStrategy(f"split_k {split_k}: a sum has one product; use 1")

    def iterations(parts: tuple[int, ...]) -> list[int]:
        lengths = [-(-sizes[p] // n) for p, n in zip(loops, parts, strict=True)]
        return lengths if max(lengths) > 1 else [*lengths[:-1], 2]

    def cost(parts: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        lengths = iterations(parts)
        return math.prod(n * length for n, length in zip(parts, lengths, strict=True)), parts[::-1]

    best = min(_factorings(split_k, len(loops)), key=cost)
    lengths = iterations(best)
    return {
        loop: (parts, parts * length)
        for loop, parts, length in zip(loops, best, lengths, strict=True)
        if parts * length != sizes[loop] or parts > 1
    }


def padded_elements(problem: ConvProblem, split_k: int) -> int:
    """gemm_k with the zeros that a split-K factor adds."""
    padded = {p: size for p, (_, size) in split_parts(problem, split_k).items()}
    sizes = {**loop_sizes(problem), **padded}
    return math.prod(sizes[p] for p in ("n", *OUTPUT_LOOPS[-problem.ndim :]))


def part_lengths(problem: ConvProblem, tiling: CpuTiling, split_k: int) -> dict[str, int]:
    """Iterations of each summed loop in a part, outermost first; one iteration is no loop.

    In a kernel of AMX tiles the deep loop has whole steps.
    """
    sizes = loop_sizes(problem)
    summed = (p for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if not t)
    lengths = {p: sizes[p] for p in summed}
    lengths |= {p: size // parts for p, (parts, size) in split_parts(problem, split_k).items()}
    lengths = {p: n for p, n in lengths.items() if n > 1}
    if tiling.instruction in TILE_INSTRUCTIONS:
        loop, step = deep_loop(lengths)
        lengths[loop] = -(-lengths[loop] // step) * step
    return lengths


def filled_parts(problem: ConvProblem, tiling: CpuTiling, split_k: int) -> int:
    """The largest split-K factor up to `split_k` of which all parts hold products."""
    sizes = loop_sizes(problem)
    while split_k > 1:
        lengths = part_lengths(problem, tiling, split_k)
        parts = split_parts(problem, split_k)
        filled = math.prod(
            -(-sizes[loop] // lengths.get(loop, size // n)) for loop, (n, size) in parts.items()
        )
        if filled == split_k:
            break
        split_k = filled
    return split_k


def deep_loop(lengths: Mapping[str, int]) -> DeepLoop:
    """The summed loop of which an AMX instruction sums several iterations.

    It is the one that fills AMX tiles best: the innermost, unless another fills them so much better
    that it is worth gathering what lies apart (`SplitSearch.gathered_times`).
    """

    def waste(loop: str) -> float:
        return -(-lengths[loop] // TILE_ROWS) * TILE_ROWS / lengths[loop]

    inner = list(lengths)[-1]
    best = min(lengths, key=waste)
    loop = best if waste(best) * SPLITS.gathered_times < waste(inner) else inner
    instructions = -(-lengths[loop] // TILE_ROWS)
    return DeepLoop(loop, -(-lengths[loop] // instructions))
