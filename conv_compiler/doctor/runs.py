# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One problem on a card: is the result right, how long does it take, what did the model say?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from conv_compiler import vgpu
from conv_compiler.compiler.compile import compile
from conv_compiler.errors import ConvError
from conv_compiler.model.module import model_module
from conv_compiler.runtime.devices import find_device
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.verify import verify_artifact

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem

# Data to verify on, and how often a kernel runs on them, bitwise the same each time.
DATA, RUNS = ("integers", "special"), 3
# Seconds that go to timing one kernel.
BUDGET = 0.5

Row = dict[str, Any]


def verified(name: str, problem: ConvProblem, target: str, device: str) -> Row:
    """Whether a kernel is right and repeats, and the model's time by counts of the machine code.

    A virtual device counts what it executes: then there is the model's time by these, too.
    """

    def row(artifact: Artifact) -> Row:
        reports = {data: verify_artifact(artifact, data, device=device, runs=RUNS) for data in DATA}
        found = {
            "passed": all(report.passed for report in reports.values()),
            "verdicts": {data: report.verdict for data, report in reports.items()},
            "model": model_module(artifact.vmfb, problem=problem).to_json(),
        }
        if find_device(device).virtual:
            found["counted_model"] = _counted(artifact, problem, device)
        return found

    return _row(name, problem, target, row)


def timed(name: str, problem: ConvProblem, target: str, device: str) -> Row:
    """How long a kernel takes by the card's clock, beside the model's time of it.

    A virtual device has no clock, and gives the model's time alone: nothing is executed.
    """

    def row(artifact: Artifact) -> Row:
        model = model_module(artifact.vmfb, problem=problem)
        found: Row = {"model": model.to_json(), "times": None, "measured_over_modelled": None}
        if not find_device(device).virtual:
            times = load(artifact, device).times(*inputs(problem, "random"), budget=BUDGET)
            found["times"] = asdict(times)
            found["measured_over_modelled"] = times.median / model.seconds
        return found

    return _row(name, problem, target, row)


def _row(name: str, problem: ConvProblem, target: str, fill: Callable[[Artifact], Row]) -> Row:
    """What is known of a problem's kernel; a refusal is a row with `error`."""
    row: Row = {"name": name, "problem": problem.to_json()}
    try:
        # A choice of the user's tuning store would compare other kernels on each machine.
        artifact = compile(problem, target, tuned=False)
        facts = artifact.to_json()
        row |= {key: facts[key] for key in ("strategy", "kernels", "rejected")}
        row["text"] = artifact.strategy.text
        row |= fill(artifact)
        return row
    except ConvError as error:
        return row | {"passed": False, "error": f"{type(error).__name__}: {error}"}


def _counted(artifact: Artifact, problem: ConvProblem, device: str) -> Row:
    kernel = load(artifact, device)
    with vgpu.counting():
        kernel(*inputs(problem))
    return model_module(artifact.vmfb, vgpu.counters(), problem=problem).to_json()
