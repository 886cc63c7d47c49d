"""The check that every family of kernels goes through."""

from __future__ import annotations

from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.verification.verify import Report, verify, verify_artifact


def check(
    problem: ConvProblem,
    target: str = "cpu",
    split_k: int | str = "auto",
    strategy: str | None = None,
    device: str | None = None,
) -> Report:
    """Integer data exactly (or within an op's own roundings), random data within tolerance."""
    report = verify(problem, target, strategy, split_k, device=device, budget=0.0).require()
    verify_artifact(report.artifact, data="random", seed=1, device=device).require()
    return report
