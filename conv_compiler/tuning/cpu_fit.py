# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of CPU kernels, fitted to kernels that are timed on this machine.

Problems with several register tiles each are compiled, and timed on one core. Then least squares
bring the model of `strategies/cpu/distribution_cost.py` nearest to these times. A cycle is the time
of one vector's multiply-add; how long that is follows from the kernels themselves.

How near the constants stay to the table's, and whether the fit is any good, is asked of each third
of the problems, by fits to the other two.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import ConvError, UnsupportedStrategy
from conv_compiler.problem.canonical import canonical
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.cpu.cost_constants import KernelCosts, costs_of
from conv_compiler.strategies.cpu.distribution_cost import DistributionCost
from conv_compiler.strategies.cpu.operand_packing_cost import Chunk
from conv_compiler.strategies.cpu.packed import paired
from conv_compiler.strategies.cpu.work_distribution import best_distribution
from conv_compiler.strategies.cpu_tilings import CpuTiling
from conv_compiler.strategies.select import candidates
from conv_compiler.strategies.strategy import Strategy, StrategyRequest
from conv_compiler.targets import Target, find_target
from conv_compiler.tuning.least_squares import Fit, fit, slopes
from conv_compiler.verification.inputs import inputs

TARGET = "cpu"
# Register tiles that are tried besides the chosen one: a half and a quarter of its rows.
SMALLER = (2, 4)
# Constants that are not cycles, and the one that a cycle is.
FIXED = ("source", "stack_bytes", "multiply_cycles")
CALLS_AT_LEAST = 3
# Of so many parts of the problems each is left out of one fit.
PARTS = 3
# How strongly a fit is pulled to the table (`least_squares.fit`): the best of these.
PULLS = (0.05, 0.1, 0.2, 0.4, 0.8)

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
# Of vectors and of AMX tiles: the data type, and the strategy whose kernels are timed.
KINDS = {"vectors": ("f32", "cpu_packed"), "tiles": ("bf16", "cpu_amx")}
# Says which problem's kernels come next.
Step = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A kernel: what its model needs to know, and the shortest time of a call."""

    number: int
    cost: DistributionCost
    chunk: Chunk
    packs_first: bool
    seconds: float

    def cycles(self, costs: KernelCosts) -> float:
        """The whole kernel by the model with these constants, multiplying included."""
        made = self.cost
        same = DistributionCost(made.problem, made.tiling, made.split_k, made.processor, costs)
        return same.multiplying + same.cycles(self.chunk, self.packs_first)


@dataclass(frozen=True, kw_only=True)
class FittedKernels:
    """The fit of a kind of kernels.

    `second` is that of a cycle. Errors are root mean squares of relative ones: by the table, and by
    fits that have not seen the kernel.
    """

    kind: str
    kernels: tuple[Timed, ...]
    second: float
    fit: Fit
    table_error: float
    fitted_error: float

    @property
    def is_better(self) -> bool:
        """Whether a fit predicts kernels that it has not seen better than the table does."""
        return self.fitted_error < self.table_error


def kinds_here() -> tuple[str, ...]:
    """The kinds of kernels that this host has."""
    has_tiles = find_target(TARGET).cpu.tile_instruction("bf16") is not None
    return ("vectors", "tiles") if has_tiles else ("vectors",)


def fit_kernels(kind: str, seconds: float, begin: Step, every: int = 1) -> FittedKernels:
    """Time the kernels of every so many-th problem, each for so many seconds, and fit their costs.

    Raises UnsupportedStrategy where the host has no kernels of that kind.
    """
    dtype, name = KINDS[kind]
    problems = [replace(one, dtype=dtype, weight_dtype="") for one in PROBLEMS[::every]]
    kernels = tuple(_timed(problems, name, seconds, begin))
    if not kernels:
        raise UnsupportedStrategy(
            f"target {TARGET}: {name} has no kernels of the problems that a fit times; "
            "compile for it by the table"
        )
    table = costs_of(kernels[0].cost.tiling.instruction)
    # Seconds of a cycle: the median, for a kernel that the model misjudges must not move it.
    second = statistics.median(one.seconds / one.cycles(table) for one in kernels)
    errors = {pull: _unseen_error(table, kernels, second, pull) for pull in PULLS}
    pull = min(PULLS, key=lambda one: errors[one])
    return FittedKernels(
        kind=kind,
        kernels=kernels,
        second=second,
        fit=_fit(table, kernels, second, pull),
        table_error=_rms(_off(table, kernels, second)),
        fitted_error=errors[pull],
    )


def _unseen_error(
    table: KernelCosts, kernels: Sequence[Timed], second: float, pull: float
) -> float:
    """The error of kernels by fits to others. Those of one problem are left out together."""
    off = list[float]()
    for part in range(PARTS):
        unseen = [one for one in kernels if one.number % PARTS == part]
        seen = [one for one in kernels if one.number % PARTS != part]
        if seen and unseen:
            costs = table.with_cycles(_fit(table, seen, second, pull).fitted)
            off += _off(costs, unseen, second)
    return _rms(off) if off else math.inf


def _fit(table: KernelCosts, kernels: Sequence[Timed], second: float, pull: float) -> Fit:
    names = [one.name for one in fields(table) if one.name not in FIXED]
    return fit(
        {name: getattr(table, name) for name in names},
        [slopes(table, names, one.cycles) for one in kernels],
        [one.cycles(table) for one in kernels],
        [one.seconds / second for one in kernels],
        pull,
    )


def _off(costs: KernelCosts, kernels: Sequence[Timed], second: float) -> list[float]:
    """How far each prediction is off, over what was measured."""
    return [one.cycles(costs) * second / one.seconds - 1 for one in kernels]


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(sum(one**2 for one in values) / len(values))


def _strategies(problem: ConvProblem, target: Target, name: str) -> Iterator[Strategy]:
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


def _timed(
    problems: Sequence[ConvProblem], name: str, seconds: float, begin: Step
) -> Iterator[Timed]:
    """Every kernel of the problems that has one, compiled and timed."""
    target = find_target(TARGET)
    for number, problem in enumerate(problems):
        begin(problem.name)
        try:
            several = list(_strategies(problem, target, name))
        except UnsupportedStrategy:
            several = []
        for one in several:
            assert isinstance(one.tiling, CpuTiling)
            tile = tuple(t for t in one.tiling.vector_parallel if t)
            asked = StrategyRequest(name=one.name, tile=tile)
            artifact = compile(problem, TARGET, asked, 1, tuned=False)
            tiling = artifact.strategy.tiling
            assert isinstance(tiling, CpuTiling)
            whole = paired(canonical(problem), tiling)
            # Compiled for all cores, but called on one, so none waits for another.
            way = best_distribution(whole, tiling, 1, target.cpu)
            one_core = replace(target.cpu, cores=1)
            yield Timed(
                number=number,
                cost=DistributionCost(whole, tiling, 1, one_core),
                chunk=Chunk(way.share, way.cache),
                packs_first=way.packs_first,
                seconds=_shortest(artifact, problem, seconds),
            )


def _shortest(artifact: Artifact, problem: ConvProblem, seconds: float) -> float:
    """The shortest call of a kernel within so many seconds, of three at least."""
    import iree.runtime as iree

    from conv_compiler.runtime.kept_memory import host_device
    from conv_compiler.runtime.kernel import load
    from conv_compiler.runtime.vm_instance import configuration

    load(artifact)(*inputs(problem, "random", 0))  # asks Linux for AMX tiles, where needed
    device = host_device("local-sync")
    context = iree.SystemContext(config=configuration(device))
    module = iree.VmModule.copy_buffer(context.instance, artifact.vmfb.read_bytes())
    context.add_vm_module(module)
    kernel = context.modules.module["main"]
    operands = [iree.asdevicearray(device, one) for one in inputs(problem, "random", 0)]
    # Of this process: what others take of the core does not count.
    clock = time.process_time
    kernel(*operands)
    found, end = list[float](), clock() + seconds
    while len(found) < CALLS_AT_LEAST or clock() < end:
        start = clock()
        kernel(*operands)
        found.append(clock() - start)
    return min(found)
