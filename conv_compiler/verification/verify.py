# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Is a kernel right? Runs it on known data and holds the result against the reference.

Integer-valued data must come out exactly: `inputs` keeps it so small that every partial sum, in any
order, is exact in the accumulator. Random data must come out within `tolerance`, which knows the
problem, and of the kernel only whether an instruction keeps few bits of a sum. Every other split
factor, strategy and target is held to the same figure.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from conv_compiler.errors import InvalidArray
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.amax import numbers_of, tolerance_of, with_largest
from conv_compiler.verification.block_scales import values
from conv_compiler.verification.calls import Called, called
from conv_compiler.verification.comparison import Comparison, check_shape
from conv_compiler.verification.comparison import compare as compare
from conv_compiler.verification.inputs import inputs as inputs
from conv_compiler.verification.inputs import trials_of, without_flushed
from conv_compiler.verification.ones import alone, multiplying
from conv_compiler.verification.reference import exact_sums, finished
from conv_compiler.verification.slices import call_operands, in_larger_arrays
from conv_compiler.verification.special import compare_special
from conv_compiler.verification.tolerance import (
    Tolerance,
    after_denormals,
    after_elementwise,
    after_operand_ops,
    below_normal,
    tolerance,
)
from conv_compiler.verification.verdict import Report as Report
from conv_compiler.verification.verdict import flushed_types, short_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import Strategy, StrategyRequest
    from conv_compiler.targets.short_sums import ShortSums

    Array = NDArray[Any]

# Times that a kernel is run to see whether its bits are the same; more would find no more.
MOST_RUNS = 1000


def _bits(array: Array) -> Array:
    """The array as unsigned integers: NaN equals itself, and 0 is not -0."""
    return array.view(f"u{array.dtype.itemsize}")


def verify_artifact(
    artifact: Artifact,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.0,
) -> Report:
    """Run an artifact `runs` times on `inputs` and compare; a dynamic one on all of `batches_of`.

    Random inputs hold no denormals that the kernel takes as 0, `denormal` ones do.
    `budget` seconds go to timing it; with none it has no times.
    """
    check_size(artifact.problem, runs)
    return verify_kernel(artifact, load(artifact, device), data, seed, runs, budget)


def verify_kernel(
    artifact: Artifact, kernel: Called, data: str, seed: int, runs: int, budget: float = 0.0
) -> Report:
    """`verify_artifact` of a kernel that is loaded."""
    problem = artifact.problem
    batches = batches_of(problem)
    arithmetic = flushed_types(artifact), short_sums(artifact)
    sets = [(n, trial) for n in batches for trial in range(trials_of(data, problem))]
    trials = [
        _tried(kernel, problem.called_with(n), arithmetic, data, (seed, trial), runs)
        for n, trial in sets
    ]
    times = None
    if budget and not kernel.virtual:
        # A virtual device executes; the time it takes says nothing about a chip.
        times = kernel.times(*call_operands(problem, data, seed), budget=budget)
    return Report(
        problem=problem,
        target=artifact.target,
        device=kernel.device,
        strategy=artifact.strategy.text,
        split_k=artifact.strategy.split_k,
        data=data,
        seed=seed,
        tolerance=max((one.tolerance for one in trials), key=_width),
        comparison=_together([n for n, _ in sets], [one.comparison for one in trials]),
        runs=runs,
        drifting=sum(one.drifting for one in trials),
        times=times,
        artifact=artifact,
        batches=batches,
    )


def check_size(problem: ConvProblem, runs: int) -> None:
    """Refuse what would not end: more than MOST_RUNS, and operands that are in float64, as the
    reference takes them, more than this machine's memory."""
    if type(runs) is not int or not 1 <= runs <= MOST_RUNS:
        raise InvalidArray(f"runs {runs}: not a number of runs; use 1 to {MOST_RUNS}")
    largest = problem.with_batch(max(batches_of(problem)))
    needed = 8 * sum(map(math.prod, largest.operand_shapes))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise InvalidArray(
            f"operands of {problem.name}: {needed >> 30} GiB in the reference's float64, and this "
            f"machine has {memory >> 30} GiB; verify a smaller batch"
        )


def batches_of(problem: ConvProblem) -> tuple[int, ...]:
    """The batches a kernel is tried on: of a dynamic one a part of a chunk, one, and some more."""
    n = problem.n
    return tuple(dict.fromkeys((1, n, 2 * n + 1))) if problem.dynamic_batch else (n,)


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """A kernel on one batch."""

    comparison: Comparison
    tolerance: Tolerance
    drifting: int


def _tried(
    kernel: Called,
    problem: ConvProblem,
    arithmetic: tuple[tuple[str, ...], ShortSums | None],
    data: str,
    which: tuple[int, int],
    runs: int,
) -> _Trial:
    """The kernel on the inputs of a seed and a trial. `arithmetic` is what its instructions make of
    denormals and of sums."""
    (seed, trial), (flushed, short) = which, arithmetic
    asked, stated = problem, inputs(problem, data, seed, trial)
    problem, given = multiplying(asked, stated)
    if data != "denormal":
        given = without_flushed(problem, given, flushed)
    taken = alone(asked, given) if asked.sums_alone else given
    first, second, *extra = values(problem, given)
    placed = [kernel.put(array) for array in in_larger_arrays(asked, taken)]
    (got, *largest), beside = called(kernel, asked, placed)
    drifting = [np.zeros(one.shape, bool) for one in (got, *largest)]
    for _ in range(runs - 1):
        again = zip((got, *largest), called(kernel, asked, placed)[0], strict=True)
        drifting = [
            found | (_bits(one) != _bits(other))
            for found, (one, other) in zip(drifting, again, strict=True)
        ]
    if data == "special" and not problem.data_type.is_integer:
        check_shape(asked, got, asked.result_shape)
        plain = values(problem, multiplying(asked, inputs(asked, data, seed))[1])
        got = got.reshape(problem.result_shape)
        given = (first, second, *extra)
        comparison, allowed = compare_special(problem, got, given, plain, short)
        if largest:
            with np.errstate(all="ignore"):
                numbers = numbers_of(problem, exact_sums(problem, first, second), tuple(extra))
            told = not extra or bool(np.isfinite(extra[0]).all())  # else NaN may come of d
            if told:
                numbers = np.where(np.isnan(got), np.nan, numbers)
            comparison = with_largest(problem, comparison, largest[0], numbers, told=told)
    else:
        sums = exact_sums(problem, first, second)
        allowed = after_operand_ops(problem, tolerance(problem, data, short), first, second)
        below = 0.0
        if data == "denormal" and not problem.data_type.is_integer:
            allowed = after_denormals(problem, first, second, flushed, short)
            types = (problem.accumulator_type, problem.result_type)
            below = max(below_normal(problem, row, flushed) for row in types)
        d = extra[0] if extra else None
        allowed = after_elementwise(problem, allowed, sums, d, below).shaped(asked.result_shape)
        want = finished(problem, sums, *extra).reshape(asked.result_shape)
        comparison = compare(asked, got, want, allowed)
        if largest:
            numbers = numbers_of(problem, sums, tuple(extra))
            near = tolerance_of(problem, data, arithmetic, (first, second, *extra), sums)
            comparison = with_largest(problem, comparison, largest[0], numbers, near)
    drifted = sum(int(one.sum()) for one in drifting)
    comparison = comparison.with_touched(beside)
    return _Trial(comparison=comparison, tolerance=allowed, drifting=drifted)


def _width(allowed: Tolerance) -> float:
    return allowed.largest_absolute + allowed.relative


def _together(batches: Sequence[int], found: Sequence[Comparison]) -> Comparison:
    """Comparisons of several sets of inputs as one."""
    if len(found) == 1:
        return found[0]
    several = len(set(batches)) > 1
    worst = (
        f"{one.worst} in a batch of {n}" if several else one.worst
        for n, one in zip(batches, found, strict=True)
        if one.worst
    )
    return Comparison(
        elements=sum(one.elements for one in found),
        wrong=sum(one.wrong for one in found),
        max_error=max(one.max_error for one in found),
        largest=max(one.largest for one in found),
        worst=next(worst, ""),
    )


def verify(
    problem: ConvProblem,
    target: str = "cpu",
    strategy: Strategy | StrategyRequest | str | None = None,
    split_k: int | str = "auto",
    *,
    data: str = "integers",
    seed: int = 0,
    device: str | None = None,
    runs: int = 2,
    budget: float = 0.2,
    tuned: bool = True,
) -> Report:
    """Compile a problem, run it on known data and compare it with the reference.

    Whole numbers must come out exactly. Random numbers must come out within a tolerance that
    depends on the problem alone, whatever the target, strategy and split-K factor. It is larger
    for one instruction, that of 8-bit floats on sm_90a, which loses bits of sums.

    Args:
        problem: What to compute.
        target, strategy, split_k, tuned: As in `compile`.
        data: The kind of inputs: `integers`, `random`, `special` (NaN, infinities, large numbers)
            or `denormal`.
        seed: The seed of the inputs.
        device: The name of a device, as in `load`.
        runs: How often the kernel runs, 1 to 1000; all runs must give the same bits.
        budget: Seconds to spend on timing; 0 for none. A virtual device is never timed.

    Returns:
        The report. A wrong kernel is no exception; `report.require()` raises Mismatch for one.

    Raises:
        InvalidArray: `runs` is out of range, or the operands exceed the memory of this machine.
        ConvError: What `compile` and `load` raise.

    Example:
        >>> problem = cc.ConvProblem(n=2, k=16, c=8, image=(9, 9), filter=(3, 3), pad_low=1)
        >>> report = cc.verify(problem, target="gfx942", budget=0)
        >>> report.passed, report.verdict
        (True, 'right (exact)')
    """
    from conv_compiler.compiler.compile import compile

    check_size(problem, runs)  # before it is compiled
    artifact = compile(problem, target, strategy, split_k, tuned=tuned)
    return verify_artifact(artifact, data, seed, device, runs, budget)
