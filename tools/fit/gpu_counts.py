#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the instruction counts of the GPU cost models to compiled machine code. Needs no GPU.

    tools/fit/gpu_counts.py [--check] [--chip gfx942] [--sample N] [--part loop]

Compiles a list of tilings, counts the instructions of each main loop (`conv_compiler.model`), and
fits the constants of `strategies/gpu/cost_constants.py` by least squares. Prints each table value
beside the fitted one, and the residuals. `--sample 6` takes each sixth problem of the list, and
stderr has a line for each kernel. `--part depthwise` fits the depthwise kernel, `--part timelines`
the constants of `model/constants.py` to timelines of code. `--check` ends with exit code 1 where
predictions by the table are off by more than CHECKED_ERROR (rms) in a fit that is printed, and
where no kernel was left to fit to.

Constants that the list does not reach stay as they are: `--chip gfx90a` reaches those of loops that
are not interleaved, and of what stands outside the loop.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from conv_compiler import ConvError, ConvProblem, compile
from conv_compiler.model.constants import INTERLEAVED
from conv_compiler.model.estimate import interleaved_cycles, unit_cycles
from conv_compiler.model.facts import chip_facts
from conv_compiler.model.kernel_model import KernelModel
from conv_compiler.model.module import alone_cycles_of, model_module
from conv_compiler.strategies.gpu.cost_constants import (
    DEPTHWISE,
    LOAD_DISTANCE,
    LOOP,
    OUTSIDE,
    REGISTERS,
)
from conv_compiler.strategies.gpu.depthwise_cost import DepthwiseTerms
from conv_compiler.strategies.gpu.instruction_counts import mma_of, mma_vgprs
from conv_compiler.strategies.gpu.loop_order import INTERLEAVED_STAGES
from conv_compiler.strategies.gpu.loop_terms import LoopTerms
from conv_compiler.strategies.gpu.tail_masking import is_cdna, tail_of
from conv_compiler.strategies.select import candidates, choose
from conv_compiler.strategies.strategy import DepthwiseTiling, GpuTiling
from conv_compiler.targets import Target, find_target
from conv_compiler.tuning.least_squares import Fit, fit, slopes

# The model ranks tilings; the tie-break takes predictions as alike that differ by half of this.
CHECKED_ERROR = 0.35
# Tilings of each problem, the fastest by the model first.
TILINGS = 3


def _square(**sizes: object) -> ConvProblem:
    return ConvProblem(**{"filter": (3, 3), "pad_low": (1, 1), "pad_high": (1, 1), **sizes})  # type: ignore[arg-type]


PROBLEMS = (
    _square(n=32, k=256, c=256, image=(100, 100)),
    _square(n=32, k=36, c=256, image=(25, 25)),
    _square(n=128, k=256, c=256, image=(14, 14)),
    _square(n=128, k=64, c=64, image=(56, 56), dtype="bf16"),
    _square(n=16, k=96, c=160, image=(28, 28)),
    _square(n=64, g=32, k=4, c=4, image=(56, 56)),
    ConvProblem(n=128, k=512, c=2048, image=(7, 7), filter=(1, 1)),
    ConvProblem(n=128, k=256, c=64, image=(56, 56), filter=(1, 1)),
    ConvProblem(n=33, k=128, c=64, image=(17, 19), filter=(1, 1)),
    ConvProblem(n=128, k=64, c=8, image=(224, 224), filter=(7, 7), stride=(2, 2), pad_low=(3, 3)),
    ConvProblem(n=4, k=40, c=24, image=(9, 9), filter=(3, 3), dtype="f32"),
    ConvProblem(n=1, k=256, c=256, image=(50, 50), filter=(3, 3), pad_low=(1, 1)),
)
DEPTHWISE_PROBLEMS = (
    _square(n=32, g=64, k=1, c=1, image=(56, 56)),
    _square(n=32, g=144, k=1, c=1, image=(28, 28), dtype="bf16"),
    ConvProblem(n=16, g=96, k=1, c=1, image=(30, 30), filter=(5, 5), dtype="f32"),
    _square(n=8, g=256, k=1, c=1, image=(112, 112)),
)


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A compiled problem: its tiling, split-K factor and main kernel."""

    problem: ConvProblem
    tiling: GpuTiling | DepthwiseTiling
    split_k: int
    kernel: KernelModel


def compiled(problems: tuple[ConvProblem, ...], name: str, target: Target) -> Iterator[Compiled]:
    """The first tilings of each problem that compile and do not spill."""
    for number, problem in enumerate(problems, 1):
        try:
            several = candidates(problem, target, name)[:TILINGS]
        except ConvError as error:
            print(f"left out: {error}")
            continue
        for one in several:
            counted = f"[{number}/{len(problems)}] {problem.name}: {one.text}"
            print(counted, file=sys.stderr, flush=True)
            split_k = one.split_k or choose(problem, target, one)[0].split_k
            try:
                artifact = compile(problem, target.name, one, split_k)
                kernel = max(model_module(artifact.vmfb).kernels, key=_flops)
            except ConvError as error:
                print(f"left out: {problem.name}: {str(error)[:90]}")
                continue
            if not _trip_flops(kernel):
                print(f"left out: {problem.name}: {one.text} has no main loop")
                continue
            tiling = artifact.strategy.tiling
            assert isinstance(tiling, GpuTiling | DepthwiseTiling)
            yield Compiled(
                problem=problem, tiling=tiling, split_k=artifact.strategy.split_k, kernel=kernel
            )


def _flops(kernel: KernelModel) -> float:
    return kernel.counts.wave.matrix_flops + kernel.counts.wave.vector_flops


def _trip_flops(kernel: KernelModel) -> float:
    return kernel.counts.iteration.matrix_flops + kernel.counts.iteration.vector_flops


def unrolled(one: Compiled, target: Target) -> float:
    """Iterations over a tile of gemm_k in one iteration of the compiled loop."""
    assert isinstance(one.tiling, GpuTiling)
    loop = LoopTerms(one.problem, target, one.tiling, mma_of(target, one.tiling))
    return one.kernel.counts.iteration.matrix / loop.products()["matrix"]


def loop_fit(found: list[Compiled], target: Target) -> Fit:
    """The vector instructions of an iteration, and its scalar ones beside them."""
    names = [one.name for one in fields(LOOP) if one.name != "iteration_salu_instructions"]
    rows, predicted, observed = [], [], []
    for one in found:
        assert isinstance(one.tiling, GpuTiling)
        loop = LoopTerms(one.problem, target, one.tiling, mma_of(target, one.tiling))
        tail = tail_of(one.problem, target, one.tiling, one.split_k)
        rows.append(slopes(LOOP, names, lambda costs, loop=loop, tail=tail: loop.valu(tail, costs)))
        predicted.append(loop.valu(tail))
        observed.append(one.kernel.counts.iteration.valu / unrolled(one, target))
    return fit({name: getattr(LOOP, name) for name in names}, rows, predicted, observed)


def outside_fit(found: list[Compiled], target: Target) -> Fit | None:
    """Vector instructions outside loops with windows that are not interleaved, on CDNA."""
    rows, observed = [], []
    for one in found:
        assert isinstance(one.tiling, GpuTiling)
        plain = one.tiling.stages < INTERLEAVED_STAGES and not one.problem.is_pointwise
        if plain and is_cdna(target):
            m, n, _ = one.tiling.workgroup
            rows.append([1.0, m * n / (one.kernel.launch.waves * target.subgroup_size)])
            observed.append(one.kernel.counts.outside.valu)
    if not rows:
        return None
    table = {
        "start_instructions": OUTSIDE.start_instructions,
        "stored_sum_instructions": OUTSIDE.stored_sum_instructions,
    }
    values = list(table.values())
    predicted = [sum(a * b for a, b in zip(row, values, strict=True)) for row in rows]
    return fit(table, rows, predicted, observed)


def means(found: list[Compiled], target: Target) -> str:
    """Constants that are one number each: the mean over all kernels, and the spread."""
    salu = [one.kernel.counts.iteration.salu / unrolled(one, target) for one in found]
    text = [_mean("iteration_salu_instructions", LOOP.iteration_salu_instructions, salu)]
    registers, distances = [], []
    for one in found:
        assert isinstance(one.tiling, GpuTiling)
        predicted = mma_vgprs(one.problem, target, one.tiling, mma_of(target, one.tiling))
        used = one.kernel.code.used_vgprs
        registers.append(used - predicted + REGISTERS.other_registers)
        if one.tiling.stages >= INTERLEAVED_STAGES:
            distances.append(one.kernel.counts.load_distance * unrolled(one, target))
    text.append(_mean("other_registers", REGISTERS.other_registers, registers))
    if distances:
        table = LOAD_DISTANCE.interleaved_iterations
        text.append(_mean("interleaved_iterations", table, distances))
    return "\n".join(text)


def _mean(name: str, table: float, values: list[float] | list[int]) -> str:
    mean = sum(values) / len(values)
    return f"{name:40}{table:10.3g}{mean:10.3g}   from {min(values):.3g} to {max(values):.3g}"


def depthwise_fit(found: list[Compiled], target: Target) -> Fit | None:
    """Vector instructions of an iteration of the depthwise kernel."""
    names = ["row_instructions", "mask_instructions"]
    rows, predicted, observed = [], [], []
    for one in found:
        tiling = one.tiling
        assert isinstance(tiling, DepthwiseTiling)

        def valu(costs: object, one: Compiled = one, tiling: DepthwiseTiling = tiling) -> float:
            return DepthwiseTerms(one.problem, target, tiling, costs).iteration().valu  # type: ignore[arg-type]

        rows.append(slopes(DEPTHWISE, names, valu))
        predicted.append(valu(DEPTHWISE))
        observed.append(one.kernel.counts.iteration.valu)
    if not rows:
        return None
    return fit({name: getattr(DEPTHWISE, name) for name in names}, rows, predicted, observed)


def timeline_fit(found: list[Compiled], target: Target) -> Fit | None:
    """Cycles of an iteration of interleaved loops, against timelines of their code."""
    chip, rows, predicted, observed = chip_facts(target), [], [], []
    for one in found:
        assert isinstance(one.tiling, GpuTiling)
        counts, launch = one.kernel.counts, one.kernel.launch
        if one.tiling.stages < INTERLEAVED_STAGES or counts.iterations < 8:
            continue
        outside = max(unit_cycles(counts.outside, 1, launch, chip).values()) + chip.load_cycles
        (alone,) = alone_cycles_of(one.kernel.code, one.kernel.dispatch, launch, [chip])
        iteration = counts.iteration
        seen = (alone - outside) / counts.iterations - iteration.barriers * chip.lds_latency_cycles
        cycles = interleaved_cycles(iteration, launch, chip)
        vector = -(-launch.waves // chip.simds) * chip.valu_cycles * iteration.valu_slots
        busiest = max(unit_cycles(iteration, 1, launch, chip).values())
        late = cycles - busiest - INTERLEAVED.bare_vector_share * vector
        rows.append([vector, late / INTERLEAVED.late_reads_share])
        predicted.append(cycles)
        observed.append(seen)
    if not rows:
        return None
    table = {
        "bare_vector_share": INTERLEAVED.bare_vector_share,
        "late_reads_share": INTERLEAVED.late_reads_share,
    }
    return fit(table, rows, predicted, observed)


def fits(part: str, every: int, target: Target) -> Iterator[tuple[str, Fit, str]]:
    """What a part fits: a title, the fit, and further lines; nothing where no kernel was left."""
    if part == "depthwise":
        found = list(compiled(DEPTHWISE_PROBLEMS[::every], "depthwise", target))
        if made := depthwise_fit(found, target):
            yield "an iteration of the depthwise kernel", made, ""
        return
    found = list(compiled(PROBLEMS[::every], "implicit_gemm", target))
    if part == "timelines":
        if made := timeline_fit(found, target):
            yield "cycles of an interleaved iteration", made, ""
    elif found:
        yield "an iteration of the main loop", loop_fit(found, target), means(found, target)
        if outside := outside_fit(found, target):
            yield "outside the main loop", outside, ""


def main() -> int:
    """Run the fits and print them; 1 where `--check` finds the table far off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--chip", default="gfx942")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="each Nth problem")
    parser.add_argument("--part", default="loop", choices=("loop", "depthwise", "timelines"))
    options = parser.parse_args()
    target = find_target(options.chip)
    errors = {}
    for title, made, more in fits(options.part, options.sample, target):
        print(f"# {target.name}: {title}\n{made.text}\n{more}")
        errors[title] = made.table_error
    if not errors:
        print(f"{target.name}: no kernel of the list to fit --part {options.part} to")
        return int(options.check)
    if off := [title for title, error in errors.items() if error > CHECKED_ERROR]:
        print(f"the table is off by more than {CHECKED_ERROR:.0%}: {', '.join(off)}")
    return int(options.check and bool(off))


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Help with the lines of the docstring."""


if __name__ == "__main__":
    sys.exit(main())
