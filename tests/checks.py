"""The checks that all families of kernels go through, and what is told before machine code."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.compiler.dumps import kernel_roles
from conv_compiler.compiler.stages import compiler_flags, compiler_path, stage_texts
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import to_numpy
from conv_compiler.strategies.select import decide
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.verification.reference import reference
from conv_compiler.verification.tolerance import tolerance
from conv_compiler.verification.verify import Report, compare, inputs, verify, verify_artifact


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


def wrong_on_the_cpu(problem: ConvProblem, text: str, folder: Path) -> int:
    """Elements of the result that are wrong when a module is compiled for the CPU and run, on
    integers."""
    import iree.runtime

    source, binary = folder / "module.mlir", folder / "module.vmfb"
    source.write_text(text)
    command = [compiler_path(), source, "-o", binary]
    command += compiler_flags(find_target("cpu"))
    subprocess.run(command, check=True, capture_output=True)
    module = iree.runtime.load_vm_flatbuffer_file(str(binary), driver="local-sync")
    operands = inputs(problem)
    found = to_numpy(module.main(*operands))
    allowed = tolerance(problem, "integers")
    return compare(problem, found, reference(problem, *operands), allowed).wrong


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
