# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `scaled_gemm`: operands with block scales, by instructions that take the scales.

Lanes read elements and scales as the caller gave them, without LDS (`passes/scaled_gemm.py`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.model.counts import KernelCounts, counted
from conv_compiler.model.estimate import estimate, unit_cycles
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.problem.canonical import data_gradient_of, elements_of
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.strategies.gpu.cost_constants import SCALED
from conv_compiler.strategies.kind import Lowering, OnePart, Promises
from conv_compiler.strategies.pipeline_file import behind_contraction, read_pipeline
from conv_compiler.strategies.scaled_tiling import ScaledTiling
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import Strategy

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target
    from conv_compiler.targets.mma import Mma

# Orders of a result's axes that a kernel stores (`passes/scaled_parts/sizes.py`).
RESULTS = ("C*GK", "GC*K", "GK*C")


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits."""
    row = wgrad.layout_row.grouped
    largest = max(math.prod(wgrad.input_shape), math.prod(wgrad.output_shape))
    rules = {
        f"{target.name} has an instruction that takes scales": bool(target.scaled),
        "it takes operands with block scales, as they are given": bool(elements_of(wgrad)),
        "it computes fwd and bwd_weight": data_gradient_of(wgrad) is None,
        "channels lie last in the result": row.weight in RESULTS,
        f"its tensors are below {BUFFER_BYTES} bytes": largest < BUFFER_BYTES,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def instruction(wgrad: ConvProblem, target: Target) -> Mma:
    """The matrix instruction of a problem that fits."""
    row = target.scaled_for(elements_of(wgrad))
    assert row is not None
    return row


def columns(wgrad: ConvProblem) -> int:
    """Columns of a group of the product."""
    return wgrad.c * math.prod(wgrad.filter)


def blocks(wgrad: ConvProblem, tiling: ScaledTiling, side: int = 16) -> int:
    """Workgroups."""
    across = side * tiling.column_tiles * tiling.waves
    return wgrad.g * -(-wgrad.k // (side * tiling.row_tiles)) * -(-columns(wgrad) // across)


def iterations(wgrad: ConvProblem, mma: Mma) -> int:
    """Of the loop of a wave."""
    return math.prod(wgrad.out_image) * -(-wgrad.n // mma.k)


def tilings(wgrad: ConvProblem, target: Target) -> tuple[ScaledTiling, ...]:
    """Every tile of the table but those of which half would be empty, and `_unverified` ones."""
    mma = instruction(wgrad, target)
    rows, across = -(-wgrad.k // mma.m), -(-columns(wgrad) // mma.n)
    found = []
    for row_tiles, column_tiles, waves in itertools.product(
        SCALED.row_tiles, SCALED.column_tiles, SCALED.waves
    ):
        fits = row_tiles < 2 * rows and column_tiles * waves < 2 * across
        one = ScaledTiling(
            row_tiles=row_tiles, column_tiles=column_tiles, waves=waves, mma=mma.name
        )
        if fits and not _unverified(wgrad, mma, one):
            found.append(one)
    return tuple(found)


def _unverified(wgrad: ConvProblem, mma: Mma, tiling: ScaledTiling) -> bool:
    """Whether IREE 3.13 makes of a tile what it fails to verify: lanes of single columns that leave
    no rest, beside rows that do, in a result whose columns are adjacent."""
    across = mma.n * tiling.column_tiles * tiling.waves
    return (
        not wgrad.layout_row.grouped.weight.endswith("K")
        and tiling.column_tiles == 1
        and columns(wgrad) % across == 0
        and wgrad.k % (mma.m * tiling.row_tiles) > 0
    )


def predict(wgrad: ConvProblem, target: Target, tiling: ScaledTiling) -> float:
    """Modelled seconds of the kernel of the products."""
    mma, chip = instruction(wgrad, target), rank_facts(target)
    elements = DTYPES[elements_of(wgrad)]
    taken = elements.bytes_of(mma.m * mma.k)
    products = tiling.row_tiles * tiling.column_tiles
    fragments = tiling.row_tiles + tiling.column_tiles
    lanes, size = target.subgroup_size, wgrad.result_type.bytes
    loop = counted(
        matrix=products,
        matrix_cycles=products * mma.subgroup_cycles,
        matrix_flops=products * 2 * mma.m * mma.n * mma.k,
        valu=fragments * SCALED.fragment_instructions,
        valu_slots=fragments * SCALED.fragment_instructions,
        loads=3 * fragments,
        load_dwords=(taken // lanes // 4 + 1) * fragments,
        load_bytes=(taken + mma.m * mma.k // 32) * fragments,
        line_bytes=(taken + mma.m * mma.k // 32) * fragments,
    )
    sums = products * mma.m * mma.n // lanes
    outside = counted(
        valu=SCALED.start_instructions + 2 * sums,
        valu_slots=SCALED.start_instructions + 2 * sums,
        stores=sums / 4,
        store_dwords=sums * size / 4,
        store_bytes=sums * size * lanes,
        line_bytes=sums * size * lanes,
    )
    turns = iterations(wgrad, mma)
    counts = KernelCounts(body=(loop,), iterations=turns, outside=outside, source="predicted")
    read = elements.bytes_of(math.prod(wgrad.input_shape) + math.prod(wgrad.output_shape))
    launch = Launch(
        workgroups=blocks(wgrad, tiling),
        waves=tiling.waves,
        vgprs=SCALED.registers + 4 * products + 9 * fragments,
        read_bytes=read,
        written_bytes=math.prod(wgrad.weight_shape) * size,
    )
    alone = turns * (SCALED.waited_loads * chip.load_cycles)
    pipes = max(unit_cycles(loop.scaled(turns) + outside, 1, launch, chip).values())
    main = estimate(counts, launch, target, chip, alone=pipes + alone)
    return main.seconds


@dataclass(frozen=True, kw_only=True)
class ScaledGemm(OnePart):
    """A kernel that a pass writes (`passes/scaled_gemm.py`).

    One part: a wave has all products of a sum.
    """

    normalise: str = "scaled_gemm"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tiles that fit, fastest first."""
        if misfit(wgrad, target):
            return ()
        found = [one for one in tilings(wgrad, target) if tile in ((), one.workgroup)]
        ranked = sorted(found, key=lambda one: predict(wgrad, target, one))
        return tuple(Strategy(name=self.name, tiling=one, split_k=1) for one in ranked)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline behind it."""
        from conv_compiler.passes.scaled_gemm import ScaledGemm as Pass

        if rule := misfit(wgrad, target):  # of a strategy that was given whole
            raise UnsupportedStrategy(
                f"strategy {one.text}: for problems of which this holds: {rule}; leave it out"
            )
        tiling, row = _tiling(one), wgrad.layout_row.grouped
        made = Pass(
            source=row.input,
            weight=row.output,
            result=row.weight,
            elements=elements_of(wgrad),
            groups=wgrad.g,
            rows=wgrad.k,
            images=wgrad.c,
            summed=wgrad.n,
            image=wgrad.image,
            outs=wgrad.out_image,
            taps=wgrad.filter,
            stride=wgrad.stride,
            dilation=wgrad.dilation,
            pad=wgrad.pad_low,
            row_tiles=tiling.row_tiles,
            column_tiles=tiling.column_tiles,
            waves=tiling.waves,
        )
        pipeline = read_pipeline("gpu_depthwise", {target.backend: True})
        info = CompilationInfo(
            lowering_config="#iree_gpu.lowering_config<{}>",
            pipeline=pipeline.steps,
            workgroup_size=(tiling.waves * target.subgroup_size, 1, 1),
            subgroup_size=target.subgroup_size,
        )
        schedule = Schedule(roles={"contraction": info}, behind=behind_contraction(pipeline))
        return Lowering(passes=(made,), schedule=schedule)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by the performance model."""
        return predict(wgrad, target, _tiling(one))

    def in_front(self, wgrad: ConvProblem, target: Target) -> float:
        """Of kernels that transpose an operand, elements and scales."""
        row = wgrad.layout_row.grouped
        operands = ((row.input, wgrad.input_shape), (row.output, wgrad.output_shape))
        elements = DTYPES[elements_of(wgrad)]
        copied = [
            elements.bytes_of(math.prod(shape))
            for letters, shape in operands
            if not letters.endswith("N")
        ]
        launches = 2 * len(copied) * rank_facts(target).launch_seconds
        return 2 * sum(copied) / (target.memory_gb_per_s * 1e9) + launches

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The matrix instruction that takes scales."""
        return Promises(instruction=instruction(wgrad, target).instruction)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        return blocks(wgrad, _tiling(one)), iterations(wgrad, instruction(wgrad, target))


def _tiling(one: Strategy) -> ScaledTiling:
    assert isinstance(one.tiling, ScaledTiling)
    return one.tiling


SCALED_GEMM = ScaledGemm(
    name="scaled_gemm",
    description="block scales applied by matrix instructions, operands read without LDS",
    tile="row tiles x column tiles of a wave x waves of a workgroup, 16x16 each",
    backends=("rocm",),
)
