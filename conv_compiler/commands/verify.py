# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler verify`: run problems and hold every weight against the float64 reference."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.commands.arguments import Job, add_problems, jobs
from conv_compiler.commands.batch import Row, require, rows_of
from conv_compiler.commands.options import (
    add_build,
    add_device,
    add_output,
    add_reproducible,
    is_tuned,
    output,
    wanted,
)
from conv_compiler.commands.report import left, right, show
from conv_compiler.commands.sizes import SizesJob, add_sizes, has_sizes, size_jobs
from conv_compiler.commands.speed import NOT_MODELLED, SPEED, measured, modelled
from conv_compiler.commands.table import PROBLEM, artifact_row
from conv_compiler.commands.together import LayerJob, add_together, layer_jobs
from conv_compiler.frontends.flags import size

if TYPE_CHECKING:
    from conv_compiler.verification.verify import Report

RESULT = (
    right("error", "relative_error", lambda error: f"{error:.1e}" if error else "0", rank=3),
    *SPEED,
    left("result", "verdict", shape="wrap"),
    NOT_MODELLED,
)
COLUMNS = (*PROBLEM, left("device", "device", rank=4), *RESULT)
EXAMPLE = "verify -n 2 -k 16 -c 8 --image 9x9 --filter 3x3"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    add_reproducible(parser)
    add_together(parser)
    add_sizes(parser)
    parser.add_argument(
        "--data",
        choices=("integers", "random", "denormal", "special"),
        metavar="KIND",
        default="integers",
        help="integers, random, denormal or special (integers)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the data (0)")
    parser.add_argument("--runs", type=size, default=2, metavar="R", help="must agree bitwise (2)")
    add_device(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Verify every problem asked for; an error after the table when one is wrong or refused."""
    from conv_compiler.compiler.compile import compile
    from conv_compiler.verification.layers import verify_layer
    from conv_compiler.verification.sizes import verify_sizes
    from conv_compiler.verification.verify import verify

    how = wanted(args)

    def check(job: Job) -> Row:
        report = verify(
            job.problem,
            job.target.name,
            how,
            job.split_k,
            data=args.data,
            seed=args.seed,
            device=args.device,
            runs=args.runs,
            tuned=is_tuned(args),
        )
        return report_row(report, job.label)

    def check_layer(job: LayerJob) -> list[Row]:
        report = verify_layer(
            job.layer,
            job.target.name,
            job.split_k,
            data=args.data,
            seed=args.seed,
            device=args.device,
            runs=args.runs,
            tuned=is_tuned(args),
        )
        return [report_row(one, job.label) for one in report.reports]

    def check_sizes(job: SizesJob) -> list[Row]:
        report = verify_sizes(
            job.sizes,
            job.target.name,
            job.split_k,
            data=args.data,
            seed=args.seed,
            device=args.device,
            runs=args.runs,
            tuned=is_tuned(args),
        )
        rows = []
        for one in report.reports:  # of the module's kernels a call launches those of one size
            alone = compile(one.problem, job.target.name, split_k=job.split_k, tuned=is_tuned(args))
            rows.append(report_row(one, job.label, alone.vmfb))
        return rows

    if has_sizes(args):
        rows = rows_of(size_jobs(args), "verify", check_sizes)
    elif args.together:
        rows = rows_of(layer_jobs(args, jobs(args)), "verify", check_layer)
    else:
        rows = rows_of(jobs(args), "verify", check)
    show(rows, COLUMNS, output(args))
    require(rows)
    return 0


def report_row(report: Report, label: str = "", launched: Path | None = None) -> Row:
    """A row for tables and JSON of one verification.

    `seconds` is the median time of a call, None where no device took it; `relative_error` is the
    largest error over the largest |reference|. Times and speeds are those of `speed.py`; modelled
    ones are of the file `launched`, which by default is the artifact's.
    """
    from conv_compiler.runtime.devices import find_device
    from conv_compiler.targets import find_target

    facts, found, passed = report.to_json(), report.comparison, report.passed
    facts.pop("artifact")
    facts.pop("times")
    row = {
        **facts,
        **artifact_row(report.artifact, label),
        "relative_error": found.max_error / found.largest if found.largest else found.max_error,
        "verdict": ("exact" if report.tolerance.exact else "right") if passed else report.verdict,
        "seconds": None,
        "gflops": report.gflops or None,
    }
    if report.times:
        return row | measured(report.problem, find_target(report.target), report.times)
    return row | (
        modelled(launched or report.artifact.vmfb, report.problem)
        if find_device(report.device).virtual
        else {}
    )
