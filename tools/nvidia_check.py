#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run our CUDA artifacts on an NVIDIA GPU: compile them where the compiler is, run them there.

    tools/nvidia_check.py compile FOLDER     on any machine with iree-base-compiler
    tools/nvidia_check.py run FOLDER         on a machine with a GPU and iree-base-runtime

With `--random COUNT` so many drawn problems of the tests are compiled besides, and as many with
channels last by each strategy whose kernels a pass writes. With `--narrow` those of 8-bit types by
wave groups alone.

`run` compares data of every kind (`verify --data`) against float64, twice each, prints a table and
writes FOLDER/report.json; it exits with 1 when a kernel is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from nvidia_jobs import drawn_jobs, listed_jobs, narrow_jobs

from conv_compiler.targets import find_target


def compile_all(folder: Path, chip: str, random: int = 0, narrow: bool = False) -> None:
    """Compile every problem into numbered artifacts; with `narrow` those of 8-bit types alone."""
    from conv_compiler import StrategyRequest, compile

    folder.mkdir(parents=True, exist_ok=True)
    jobs = [] if narrow else [*listed_jobs(chip), *drawn_jobs(chip, random)]
    if find_target(chip).wgmma_along_k:
        jobs += narrow_jobs(chip)
    for number, (problem, split_k, name) in enumerate(jobs):
        request = StrategyRequest(name=name) if isinstance(name, str) else name
        artifact = compile(problem, chip, strategy=request, split_k=split_k, tuned=False)
        artifact.save(folder / f"{number:03}.vmfb")
        print(f"{number:03} {problem.name} {artifact.strategy.text}")


def run_all(folder: Path, device: str = "cuda") -> bool:
    """Run and verify every artifact in the folder; True when all are right."""
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.verification.inputs import DATA
    from conv_compiler.verification.verify import verify_artifact

    reports = []
    for path in sorted(folder.glob("*.vmfb")):
        artifact = Artifact.load(path)
        # Of integers all data are the same.
        kinds = ("integers",) if artifact.problem.data_type.is_integer else tuple(DATA)
        for data in kinds:
            timed = 0.3 if data == ("random" if len(kinds) > 1 else kinds[0]) else 0.0
            report = verify_artifact(artifact, data=data, device=device, budget=timed)
            print(f"{path.stem} {data:8} {report.text}", flush=True)
            reports.append(report)
    rows = [
        {
            "problem": r.problem.name,
            "strategy": r.strategy,
            "data": r.data,
            "passed": r.passed,
            "max_error": r.comparison.max_error,
            "milliseconds": r.seconds * 1e3,
        }
        for r in reports
    ]
    (folder / "report.json").write_text(json.dumps(rows, indent=1))
    wrong = sum(not r.passed for r in reports)
    print(f"{len(reports) - wrong} of {len(reports)} runs right")
    return bool(reports) and not wrong


def two_steps(
    about: str,
    compile_all: Callable[..., None],
    run_all: Callable[[Path], bool],
    chip: str = "sm_80",
    *,
    draws: bool = False,
) -> int:
    """Run the step that the command line names; 0 when all went well. With `draws` there may be
    drawn problems besides."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("step", choices=("compile", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chip", default=chip, help=f"a row of the targets table ({chip})")
    if draws:
        parser.add_argument("--random", type=int, default=0, help="drawn problems besides (0)")
        parser.add_argument("--narrow", action="store_true", help="8-bit types on sm_90a alone")
    arguments = parser.parse_args()
    if arguments.step == "compile":
        more = (arguments.random, arguments.narrow) if draws else ()
        compile_all(arguments.folder, arguments.chip, *more)
        return 0
    return 0 if run_all(arguments.folder) else 1


if __name__ == "__main__":
    sys.exit(two_steps(__doc__ or "", compile_all, run_all, draws=True))
