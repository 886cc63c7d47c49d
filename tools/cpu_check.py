#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run kernels of a CPU by name on such a CPU: compile them where the compiler is, run them there.

    tools/cpu_check.py compile FOLDER [--chip cpu-sapphirerapids@2]
    tools/cpu_check.py run FOLDER         on a machine with such a CPU and iree-base-runtime

The problems are those of tools/nvidia_jobs.py, in bf16 and i8: what tile registers multiply. `run`
compares integer data exactly and random data against float64, twice each, prints a table and writes
FOLDER/report.json; it exits with 1 when a kernel is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from nvidia_check import run_all, two_steps
from nvidia_jobs import PROBLEMS

from conv_compiler.problem.conv_problem import ConvProblem


def problems() -> Iterator[tuple[ConvProblem, int | str]]:
    """Every problem in both types; those with ops in bf16 alone."""
    for problem, split_k in PROBLEMS:
        has_op = any((problem.elementwise, problem.input_op, problem.output_op, problem.weight_op))
        for dtype in ("bf16",) if has_op else ("bf16", "i8"):
            yield replace(problem, dtype=dtype, weight_dtype="", compute=""), split_k


def compile_all(folder: Path, chip: str) -> None:
    """Compile every problem into numbered artifacts."""
    from conv_compiler import compile

    folder.mkdir(parents=True, exist_ok=True)
    for number, (problem, split_k) in enumerate(dict.fromkeys(problems())):
        artifact = compile(problem, chip, split_k=split_k, tuned=False)
        artifact.save(folder / f"{number:02}.vmfb")
        print(f"{number:02} {problem.name} {artifact.strategy.text}")


if __name__ == "__main__":
    on_cpu = partial(run_all, device="cpu")
    sys.exit(two_steps(__doc__ or "", compile_all, on_cpu, chip="cpu-sapphirerapids"))
