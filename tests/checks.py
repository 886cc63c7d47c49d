"""The checks that all families of kernels go through, and what is told before machine code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.dumps import kernel_roles
from conv_compiler.compiler.stages import stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.strategies.select import decide
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.verify import Report, verify, verify_artifact


def check(
    problem: ConvProblem,
    target: str = "cpu",
    split_k: int | str = "auto",
    strategy: str | None = None,
    device: str | None = None,
) -> Report:
    """Integer data exactly (or within an op's own roundings), random data within tolerance.

    Random data run twice for the same bits; integers, whose sums have one value, run once.
    """
    report = verify(problem, target, strategy, split_k, device=device, runs=1, budget=0.0)
    report.require()
    verify_artifact(report.artifact, data="random", seed=1, device=device).require()
    return report


def check_special(artifact: Artifact, target: str, seeds: Iterable[int] = (0, 1)) -> None:
    """`special` data of some seeds, and `denormal` data where f16 denormals are not taken as 0."""
    for seed in seeds:
        verify_artifact(artifact, data="special", seed=seed).require()
    flushed = artifact.strategy.mma.endswith("_F16") and target == "gfx90a"
    found = verify_artifact(artifact, data="denormal")
    assert flushed or found.require().passed


def configured_roles(
    problem: ConvProblem, target: str, strategy: str | None = None, split_k: int | str = "auto"
) -> list[str]:
    """Roles of a problem's kernels, read where these are configured: no code is made.

    They are those of the first candidate.
    """
    choice = decide(resolve(problem, find_target(target)), strategy, split_k)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        stage_texts(choice.problem, choice.strategies[0], work, "configured")
        found = list(kernel_roles(work).values())
        exported = (work / "configured.mlir").read_text().count("hal.executable.export ")
    assert len(found) == exported > 0
    return found
