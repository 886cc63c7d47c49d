# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether kernels that are chosen by fitted costs are faster than those chosen by the table.

Costs that predict times better need not choose better: they are fitted on one core, and say nothing
of what cores take from one another. So layers are compiled by both, and timed in turns as a user
calls them.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.fitted_costs import (
    ENVIRONMENT,
    FILE,
    NOT_FITTED,
    FittedCosts,
    keep_fitted_costs,
)
from conv_compiler.targets.processors import host_kind
from conv_compiler.verification.inputs import inputs

TARGET = "cpu"
# Layers of ResNet-50 and ResNeXt-50: taps, strides, groups, large and small images.
LAYERS = (
    ConvProblem(n=16, k=64, c=64, image=(56, 56), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    ConvProblem(n=16, k=128, c=256, image=(56, 56), filter=(1, 1), dtype="f32"),
    ConvProblem(n=16, k=128, c=128, image=(28, 28), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    ConvProblem(n=16, k=512, c=128, image=(28, 28), filter=(1, 1), dtype="f32"),
    ConvProblem(n=16, k=256, c=256, image=(14, 14), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    ConvProblem(n=16, k=512, c=256, image=(56, 56), filter=(1, 1), stride=(2, 2), dtype="f32"),
    ConvProblem(n=16, k=512, c=2048, image=(7, 7), filter=(1, 1), dtype="f32"),
    ConvProblem(n=16, g=32, k=8, c=8, image=(28, 28), filter=(3, 3), pad_low=(1, 1), dtype="f32"),
    ConvProblem(n=16, g=32, k=16, c=16, image=(28, 28), filter=(3, 3), stride=(2, 2), dtype="f32"),
)
# Calls of each kernel at least, however long they take.
CALLS_AT_LEAST = 5
Step = Callable[[str], None]


def gain(costs: FittedCosts, dtypes: Sequence[str], seconds: float, begin: Step) -> float:
    """The time by the table over the time by these costs: the geometric mean of the layers in each
    of some types. Layers with the same kernel by both count as 1.

    The user's file of costs is neither read nor written.
    """
    logs = []
    for dtype in dtypes:
        for layer in LAYERS:
            problem = ConvProblem.from_json({**layer.to_json(), "dtype": dtype, "weight_dtype": ""})
            begin(problem.name)
            with _by(NOT_FITTED):
                before = compile(problem, TARGET, tuned=False)
            with _by(costs):
                after = compile(problem, TARGET, tuned=False)
            same = before.vmfb.read_bytes() == after.vmfb.read_bytes()
            logs.append(0.0 if same else math.log(_ratio(before, after, problem, seconds)))
    return math.exp(sum(logs) / len(logs))


@contextmanager
def _by(costs: FittedCosts) -> Iterator[None]:
    """While it lasts, these are the costs of this host, in a file of their own."""
    named = os.environ.get(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ENVIRONMENT] = str(Path(folder) / FILE)
        try:
            keep_fitted_costs(costs, host_kind())
            yield
        finally:
            del os.environ[ENVIRONMENT]
            if named is not None:
                os.environ[ENVIRONMENT] = named


def _ratio(before: Artifact, after: Artifact, problem: ConvProblem, seconds: float) -> float:
    """The median time of one kernel over that of another, called in turns for so long."""
    from conv_compiler.runtime.kernel import load

    kernels, operands = (load(before), load(after)), inputs(problem, "random", 0)
    times: tuple[list[float], list[float]] = ([], [])
    for kernel in kernels:
        kernel(*operands)
    end = time.perf_counter() + seconds
    while len(times[0]) < CALLS_AT_LEAST or time.perf_counter() < end:
        for kernel, own in zip(kernels, times, strict=True):
            start = time.perf_counter()
            kernel(*operands)
            own.append(time.perf_counter() - start)
    first, second = map(statistics.median, times)
    return first / second
