# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU strategies whose kernel a pass writes: workgroups copy the operands that they multiply.

`cpu_dot` multiplies pairs, where the CPU has an instruction that adds two products. The batch is
cut into halves, and an element of an operand holds the data of an image of each. For all else it is
a problem of half the batch. `cpu_amx` (`amx_tiles.py`) multiplies AMX tiles of pairs or of four
images, and shares the rest. `cpu_packed` multiplies single elements. The register tiles are those
of `cpu_lin` or `cpu_grouped`, but nothing is transposed or padded in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.cpu.amx_tiles import (
    instruction_refusal,
    several_at_once,
    tile_instruction,
)
from conv_compiler.strategies.cpu.cost_constants import BY_WORKGROUPS
from conv_compiler.strategies.cpu.cpu_kind import CpuKind, cpu_tiling, vector_schedule
from conv_compiler.strategies.cpu.loops import (
    grouped_refusal,
    lin_refusal,
    shaping_passes,
)
from conv_compiler.strategies.cpu.operand_packing_cost import factors_of
from conv_compiler.strategies.cpu.register_tiles import (
    best_tiling,
    lanes_of,
    lies_ready,
)
from conv_compiler.strategies.cpu.split_k import deep_loop, even_splits, part_lengths, split_parts
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.f8_emulation import emulation_passes
from conv_compiler.strategies.kind import Lowering
from conv_compiler.strategies.schedule import Schedule
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets.f8 import operand_bytes
from conv_compiler.targets.host import TILE_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target
    from conv_compiler.targets.host import PairInstruction

# The script of `mlir/normalise/` that runs the passes.
NORMALISE = "cpu_packed"


def paired(problem: ConvProblem, tiling: CpuTiling) -> ConvProblem:
    """The problem in groups of as many images as the instruction adds products.

    The last group is filled with zero images.
    """
    return problem.with_batch(-(-problem.n // factors_of(tiling.instruction)))


def dot_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings of the halved batch; none for one image, or without an instruction for the type.

    Images are those of the weight gradient that is made: in other directions they are channels.
    """
    if dot_refusal(problem, target):
        return ()
    row = _instruction(problem, target)
    assert row is not None
    half = problem.with_batch(-(-problem.n // 2))
    tilings = _tilings(half, target, split_k, tile)
    return tuple(
        Strategy(name="cpu_dot", tiling=replace(tiling, instruction=row.name)) for tiling in tilings
    )


def dot_refusal(problem: ConvProblem, target: Target) -> str:
    """Why there are no `dot_candidates`; empty where there are."""
    if _instruction(problem, target) is None:
        return instruction_refusal(problem, target, "pairs")
    return packed_refusal(problem.with_batch(-(-problem.n // 2)), target)


def packed_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings of any problem that has lanes."""
    tilings = _tilings(problem, target, split_k, tile)
    return tuple(Strategy(name="cpu_packed", tiling=tiling) for tiling in tilings)


def packed_refusal(problem: ConvProblem, target: Target) -> str:
    """Why there are no `packed_candidates`; empty where there are."""
    lin, grouped = lin_refusal(problem, target), grouped_refusal(problem, target)
    return lin if grouped else ""


def needs_no_copy(problem: ConvProblem, target: Target, strategy: Strategy) -> bool:
    """Whether `cpu_lin` reads the operands where they lie and is faster than copies of them.

    That is so with channels innermost, data of the sums' type, nothing to pad and a stride. Each
    element is then read for one tap, some are never read, and copies would fetch them in pieces.
    """
    row = problem.layout_row.grouped
    if operand_bytes(problem, target) < problem.accumulator_type.bytes:
        return False  # a copy is widened once, what lies in memory whenever it is read
    if row.input.endswith("*") or row.output.endswith("*") or math.prod(problem.filter) > 1:
        return False
    if set(problem.stride) == {1}:
        return False
    assert isinstance(strategy.tiling, CpuTiling)
    return lies_ready(problem, strategy.tiling)


def _tilings(
    problem: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
) -> Iterator[CpuTiling]:
    """Tilings with channels in the lanes and with groups in them, the cheapest first."""
    if packed_refusal(problem, target):
        return
    unit = target.cpu.unit
    fill = max(problem.c, problem.k) >= lanes_of(unit, problem)
    lanes = "ck" if fill or problem.g == 1 else "ckg"
    if lin_refusal(problem, target):
        lanes = "g"
    both = (best_tiling(problem, one, unit, tile, BY_WORKGROUPS) for one in lanes)
    for one in sorted((found for found in both if found), key=lambda costed: costed.cycles):
        yield one.tiling


def _instruction(problem: ConvProblem, target: Target) -> PairInstruction | None:
    """The instruction that multiplies the problem's data in pairs, if the CPU has one."""
    data = several_at_once(problem, target)
    return target.cpu.pair_instruction(data) if data else None


def splits(problem: ConvProblem, target: Target, tiling: CpuTiling) -> list[int]:
    """The split-K factor that costs least, of those that add no zeros."""
    whole, processor = paired(problem, tiling), target.cpu

    def cycles(parts: int) -> float:
        return best_distribution(whole, tiling, parts, processor).cycles

    return [min(even_splits(whole), key=cycles)]


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """Images in pairs, then what all CPU kernels need, then the kernel.

    UnsupportedStrategy for another instruction than that of the problem and the CPU.
    """
    from conv_compiler.passes.pad_loops import PadLoops
    from conv_compiler.passes.pair_products import PairProducts
    from conv_compiler.passes.vector_kernel import VectorKernel

    tiling = strategy.tiling
    assert isinstance(tiling, CpuTiling)
    rows = (_instruction(problem, target), tile_instruction(problem, target))
    known = [row.name for row in rows if row]
    if tiling.instruction and tiling.instruction not in known:
        raise UnsupportedStrategy(
            f"strategy {strategy.text}: {target.name} multiplies {problem.dtype} over {problem.n} "
            f"images by {' or '.join(known) or 'no instruction of pairs'}; leave the strategy out"
        )
    whole, processor = paired(problem, tiling), target.cpu
    found = best_distribution(whole, tiling, strategy.split_k, processor)
    parts = [1 for parts, _ in split_parts(whole, strategy.split_k).values() if parts > 1]
    tile = (t for t in tiling.vector_parallel if t)
    factors = factors_of(tiling.instruction)
    pairs: list[Pass] = [PairProducts(loop="n", products=factors)] if factors > 1 else []
    if problem.n % factors:
        pairs.insert(0, PadLoops(loops=("n",), sizes=(factors * whole.n,)))
    steps: dict[str, int] = {}
    if tiling.instruction in TILE_INSTRUCTIONS:
        lengths = part_lengths(whole, tiling, strategy.split_k)
        loop, step = deep_loop(lengths)
        steps = {**dict.fromkeys(lengths, 1), loop: step}
    return (
        *emulation_passes(problem, target),
        *pairs,
        *shaping_passes(whole, strategy, as_they_lie=True),
        VectorKernel(
            share=(*parts, *found.share.values()),
            tile=(*parts, *tile),
            cache=tuple(found.cache.values()),
            lanes=lanes_of(processor.unit, problem),
            instruction=tiling.instruction or "fma",
            steps=tuple(steps.values()),
            packs_first=found.packs_first,
        ),
    )


def schedule(problem: ConvProblem, target: Target, strategy: Strategy) -> Schedule:
    """The pipeline that lowers a kernel of loops over vectors."""
    tiling = strategy.tiling
    assert isinstance(tiling, CpuTiling)
    whole, processor = paired(problem, tiling), target.cpu
    found = best_distribution(whole, tiling, strategy.split_k, processor)
    roles = ("contraction", "packing") if found.packs_first else ("contraction",)
    return vector_schedule(*roles, on_stack=True)


@dataclass(frozen=True, kw_only=True)
class PackedKind(CpuKind):
    """A strategy whose kernel a pass writes (`passes/vector_kernel.py`)."""

    normalise: str = NORMALISE

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The payload in the form of a CPU kernel, and the pipeline that lowers it."""
        return Lowering(passes=passes(wgrad, target, one), schedule=schedule(wgrad, target, one))

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """The split-K factor by which the least is moved."""
        return splits(wgrad, target, cpu_tiling(one))
