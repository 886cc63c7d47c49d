#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit the cycles of the CPU cost model to kernels timed on this machine.

    tools/fit/cpu_costs.py [--check] [--amx] [--few] [--seconds 0.2]

Compiles a list of problems with several register tiles each for one core of this CPU, times each
kernel, and fits the constants of `strategies/cpu/cost_constants.py` (`KernelCosts`) by least
squares. Prints each table value beside the fitted one, and the residuals. A cycle is the time of
one vector's multiply-add; how long that is follows from the kernels themselves. `--amx` takes the
kernels of AMX tiles, where the CPU has these, `--few` a third of the list. `--check` ends with exit
code 1 where predictions by the table are off by more than CHECKED_ERROR (rms).

Use a quiet machine: the shortest of several calls counts, but a busy memory bus slows all of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import iree.runtime as iree
from cpu_peaks import loaded
from least_squares import fit, slopes

from conv_compiler import ConvError, ConvProblem, compile, load
from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.problem.canonical import canonical
from conv_compiler.strategies.cpu.cost_constants import KernelCosts, costs_of
from conv_compiler.strategies.cpu.distribution_cost import DistributionCost
from conv_compiler.strategies.cpu.operand_packing_cost import Chunk
from conv_compiler.strategies.cpu.packed import paired
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.select import candidates
from conv_compiler.strategies.strategy import CpuTiling, Strategy, StrategyRequest
from conv_compiler.targets import Target, find_target
from conv_compiler.verification.inputs import inputs

TARGET = "cpu"
CHECKED_ERROR = 0.5
# Register tiles that are tried besides the chosen one: a half and a quarter of its rows.
SMALLER = (2, 4)
# Constants that are not cycles, and the one that a cycle is.
FIXED = ("source", "stack_bytes", "multiply_cycles")
CALLS_AT_LEAST = 3

PROBLEMS = (
    ConvProblem(n=8, k=64, c=64, image=(28, 28), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1)),
    ConvProblem(n=16, k=256, c=64, image=(28, 28), filter=(1, 1)),
    ConvProblem(n=16, k=64, c=256, image=(14, 14), filter=(1, 1)),
    ConvProblem(n=8, k=128, c=128, image=(14, 14), filter=(3, 3), pad_low=(1, 1), pad_high=(1, 1)),
    ConvProblem(n=4, k=32, c=16, image=(56, 56), filter=(3, 3), stride=(2, 2)),
    ConvProblem(n=8, g=16, k=8, c=8, image=(28, 28), filter=(3, 3), pad_low=(1, 1)),
    ConvProblem(n=32, k=512, c=512, image=(7, 7), filter=(1, 1)),
    ConvProblem(n=2, k=64, c=32, image=(40, 40), filter=(5, 5), pad_low=(2, 2), pad_high=(2, 2)),
    ConvProblem(n=8, k=48, c=24, image=(20, 20), filter=(3, 3)),
)


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A kernel: what its model needs to know, and the shortest time of a call."""

    cost: DistributionCost
    chunk: Chunk
    packs_first: bool
    seconds: float

    def cycles(self, costs: KernelCosts) -> float:
        """The whole kernel by the model with these constants, multiplying included."""
        with_costs = replaced(self.cost, costs)
        return with_costs.multiplying + with_costs.cycles(self.chunk, self.packs_first)


def replaced(cost: DistributionCost, costs: KernelCosts) -> DistributionCost:
    """The same kernel's cost with other constants."""
    return DistributionCost(cost.problem, cost.tiling, cost.split_k, cost.processor, costs)


def strategies(problem: ConvProblem, target: Target, name: str) -> Iterator[Strategy]:
    """The chosen register tile, and smaller ones."""
    first = candidates(problem, target, name)[0]
    yield first
    assert isinstance(first.tiling, CpuTiling)
    tile = [t for t in first.tiling.vector_parallel if t]
    rows = max(range(len(tile) - 1), key=lambda axis: tile[axis])
    for part in SMALLER:
        if tile[rows] % part == 0:
            smaller = (*tile[:rows], tile[rows] // part, *tile[rows + 1 :])
            try:
                yield candidates(problem, target, name, tile=smaller)[0]
            except ConvError:
                continue


def shortest(artifact: Artifact, problem: ConvProblem, seconds: float) -> float:
    """The shortest call of a kernel within so many seconds, of three at least."""
    load(artifact)(*inputs(problem, "random", 0))  # asks Linux for AMX tiles, where needed
    device = iree.get_device("local-sync")
    kernel = loaded(artifact.vmfb.read_bytes(), device)
    operands = [iree.asdevicearray(device, one) for one in inputs(problem, "random", 0)]
    # Of this process: what others take of the core does not count.
    clock = time.process_time
    kernel(*operands)
    found, end = [], clock() + seconds
    while len(found) < CALLS_AT_LEAST or clock() < end:
        start = clock()
        kernel(*operands)
        found.append(clock() - start)
    return min(found)


def timed(problems: tuple[ConvProblem, ...], name: str, seconds: float) -> Iterator[Timed]:
    """Every kernel of the list, compiled and timed."""
    target = find_target(TARGET)
    for problem in problems:
        try:
            several = list(strategies(problem, target, name))
        except ConvError as error:
            print(f"left out: {str(error)[:90]}")
            continue
        for one in several:
            artifact = compile(problem, TARGET, StrategyRequest(name=one.name, tile=_tile(one)), 1)
            tiling = artifact.strategy.tiling
            assert isinstance(tiling, CpuTiling)
            whole = paired(canonical(problem), tiling)
            # Compiled for all cores, but called on one, so none waits for another.
            way = best_distribution(whole, tiling, 1, target.cpu)
            one_core = replace(target.cpu, cores=1)
            yield Timed(
                cost=DistributionCost(whole, tiling, 1, one_core),
                chunk=Chunk(way.share, way.cache),
                packs_first=way.packs_first,
                seconds=shortest(artifact, problem, seconds),
            )


def _tile(one: Strategy) -> tuple[int, ...]:
    assert isinstance(one.tiling, CpuTiling)
    return tuple(t for t in one.tiling.vector_parallel if t)


def main() -> int:
    """Run the fit and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--amx", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    dtype, name = ("bf16", "cpu_amx") if options.amx else ("f32", "cpu_packed")
    problems = tuple(
        replace(one, dtype=dtype, weight_dtype="") for one in PROBLEMS[:: 3 if options.few else 1]
    )
    found = list(timed(problems, name, options.seconds))
    if not found:
        print(f"{TARGET} has no kernels of {name}")
        return 1
    costs = costs_of(found[0].cost.tiling.instruction)
    names = [one.name for one in fields(costs) if one.name not in FIXED]
    predicted = [one.cycles(costs) for one in found]
    # Seconds of a cycle: the median, for a kernel that the model misjudges must not move it.
    second = statistics.median(
        one.seconds / cycles for one, cycles in zip(found, predicted, strict=True)
    )
    made = fit(
        {name: getattr(costs, name) for name in names},
        [slopes(costs, names, one.cycles) for one in found],
        predicted,
        [one.seconds / second for one in found],
    )
    for one, cycles in zip(found, predicted, strict=True):
        tile = "x".join(map(str, one.cost.tile.values()))
        taken = one.seconds / second / cycles
        print(f"{one.cost.problem.name:60}{tile:>16}{taken:8.2f} of the predicted time")
    print(f"# {name}, {dtype}, one core: a cycle takes {second * 1e9:.3f} ns\n{made.text}")
    if options.check and made.table_error > CHECKED_ERROR:
        print(f"the table is off by more than {CHECKED_ERROR:.0%}")
        return 1
    return 0


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Help with the lines of the docstring."""


if __name__ == "__main__":
    sys.exit(main())
