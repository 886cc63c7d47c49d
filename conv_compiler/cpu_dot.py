"""The CPU strategy of products in pairs: two where the CPU has an instruction that adds both.

The batch is cut into halves, and an element of an operand holds the data of an image of each. To
all else it is a problem of half the batch: tiles, parts and workgroups are those `cpu_lin` or
`cpu_grouped` would have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.cpu import (
    grouped_candidates,
    lin_candidates,
    pipeline,
    shaping_passes,
)
from conv_compiler.cpu_copies import COPY_BYTES, best_deal
from conv_compiler.cpu_splits import even_splits, split_parts
from conv_compiler.cpu_tiles import PAIR_LANE_TILES
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.f8 import emulation_passes, multiplied
from conv_compiler.processors import processor_of
from conv_compiler.schedule import CompilationInfo, Schedule
from conv_compiler.strategy import CpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.host import PairInstruction
    from conv_compiler.passes import Pass
    from conv_compiler.problem import ConvProblem
    from conv_compiler.targets import Target

# What a workgroup copies of its operands is kept on its thread's stack.
STACK_FLAGS = (f"--iree-llvmcpu-stack-allocation-limit={COPY_BYTES}",)


def halved(problem: ConvProblem) -> ConvProblem:
    """The problem whose images are pairs, the last one with a zero image where they are odd."""
    return problem.with_batch(-(-problem.n // 2))


def candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings of the halved batch; none for one image, or without an instruction for the type.

    Images are those of the weight gradient that is made: in other directions they are channels.
    """
    row = _instruction(problem, target)
    if row is None:
        return ()
    half = halved(problem)
    tilings = (
        one.tiling
        for rule in (lin_candidates, grouped_candidates)
        for one in rule(half, target, split_k, tile, PAIR_LANE_TILES)
    )
    return tuple(
        Strategy(name="cpu_dot", tiling=replace(tiling, instruction=row.name))
        for tiling in tilings
        if isinstance(tiling, CpuTiling)
    )


def _instruction(problem: ConvProblem, target: Target) -> PairInstruction | None:
    """The instruction that multiplies the problem's data in pairs, if the CPU has one."""
    first, second = multiplied(problem, target)
    pairs = first == second and problem.n > 1
    return processor_of(target).pair_instruction(first) if pairs else None


def splits(problem: ConvProblem, target: Target, tiling: CpuTiling) -> list[int]:
    """The parts, of those that add no zeros, with which copies and partial sums cost least."""
    half, processor = halved(problem), processor_of(target)

    def cycles(parts: int) -> float:
        return best_deal(half, tiling, parts, processor).cycles

    return [min(even_splits(half), key=cycles)]


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """Images in pairs, then what all CPU kernels need, then the kernel.

    UnsupportedStrategy for another instruction than that of the problem and the CPU.
    """
    from conv_compiler.passes.pad_loops import PadLoops
    from conv_compiler.passes.pair_products import PairProducts
    from conv_compiler.passes.vector_kernel import VectorKernel

    tiling, half, processor = strategy.tiling, halved(problem), processor_of(target)
    assert isinstance(tiling, CpuTiling)
    row = _instruction(problem, target)
    if row is None or row.name != tiling.instruction:
        raise UnsupportedStrategy(
            f"strategy {strategy.text}: {target.name} multiplies {problem.dtype} over {problem.n} "
            f"images by {row.name if row else 'no instruction of pairs'}; leave the strategy out"
        )
    found = best_deal(half, tiling, strategy.split_k, processor)
    parts = [1 for parts, _ in split_parts(half, strategy.split_k).values() if parts > 1]
    tile = (t for t in tiling.vector_parallel if t)
    even = [PadLoops(loops=("n",), sizes=(2 * half.n,))] if problem.n % 2 else []
    return (
        *emulation_passes(problem, target),
        *even,
        PairProducts(loop="n"),
        *shaping_passes(half, strategy),
        VectorKernel(
            share=(*parts, *found.share.values()),
            tile=(*parts, *tile),
            cache=tuple(found.cache.values()),
            lanes=processor.unit.lanes,
            instruction=row.name,
        ),
    )


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """The way down of a kernel that is written as loops of vectors."""
    info = CompilationInfo(
        lowering_config="#iree_cpu.lowering_config<>", pipeline=pipeline("cpu_vector")
    )
    return Schedule(roles={"contraction": info}, flags=STACK_FLAGS)
