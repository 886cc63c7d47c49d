# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler roofline`: how near problems' kernels come to what a chip can do at most."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.commands.arguments import Job, add_problems, jobs, read_files
from conv_compiler.commands.batch import Row, require, rows_of
from conv_compiler.commands.options import add_build, add_output, output, wanted
from conv_compiler.commands.report import left, right, seconds, show
from conv_compiler.commands.table import PROBLEM, artifact_row
from conv_compiler.errors import UnsupportedProblem

if TYPE_CHECKING:
    from conv_compiler.pictures.roofline_plot import Point
    from conv_compiler.targets import Target

COLUMNS = (
    *PROBLEM,
    right("FLOP a byte", "intensity", lambda value: f"{value:.3g}", rank=1),
    right("modelled", "seconds", seconds),
    right("least", "least_seconds", seconds),
    right("of the roof %", "share", lambda share: f"{100 * share:.0f}"),
    right("TFLOP/s", "tflops", lambda speed: f"{speed:.4g}"),
    left("bound by", "binds", rank=2),
)
EXAMPLE = "roofline problems.txt --target gfx942 --plot roof.svg"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    parser.add_argument(
        "--look",
        action="store_true",
        help="model with LDS conflicts and cache lines of a short run",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw them under the roof")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Model every problem's kernels and print the table; one chip a call."""
    from conv_compiler.model.facts import chip_facts

    found = jobs(args)
    targets = list(dict.fromkeys(job.target for job in found))
    if len(targets) > 1:
        names = ",".join(one.name for one in targets)
        raise UnsupportedProblem(f"target {names}: several; roofline takes one chip")
    chip_facts(targets[0])  # refuse before compiling
    if args.plot:
        from conv_compiler.pictures.plots import check_plot

        check_plot(args.plot, read_files(args))
    rows = rows_of(found, "roofline", lambda job: _row(args, job))
    how = output(args)
    refused = any("error" in row for row in rows)
    result = left("result", "verdict", shape="wrap")
    if how.is_table:
        print(f"{targets[0].name}, modelled, not measured, at the boost clock")
    show(rows, (*COLUMNS, result) if refused else COLUMNS, how)
    if args.plot:
        _draw(args.plot, found, rows, targets[0])
    require(rows)
    return 0


def _row(args: argparse.Namespace, job: Job) -> Row:
    from conv_compiler.commands.model_table import model
    from conv_compiler.compiler.compile import compile
    from conv_compiler.model.roofline import least_seconds, work_of

    artifact = compile(job.problem, job.target.name, wanted(args), job.split_k)
    module = model(artifact.vmfb, "look" if args.look else "static", artifact.problem)
    work = work_of(artifact.problem, job.target)
    least = least_seconds(artifact.problem, job.target)
    return {
        **artifact_row(artifact, job.label),
        "direction": job.problem.direction,
        "operands": list(work.operands),
        "flops": work.flops,
        "bytes": work.bytes,
        "intensity": work.flops / work.bytes,
        "seconds": module.seconds,
        "sustained_seconds": module.sustained_seconds,
        "least_seconds": least,
        "share": least / module.seconds,
        "tflops": work.flops / module.seconds / 1e12,
        "binds": module.main.estimate.binds,
    }


def _draw(path: Path, found: tuple[Job, ...], rows: list[Row], target: Target) -> None:
    from conv_compiler.pictures.roofline_plot import ceilings, draw_roofline

    valid = [row for row in rows if "seconds" in row]
    if not valid:
        return
    types = dict.fromkeys(tuple(row["operands"]) for row in valid)
    if len(types) > 1:
        names = ", ".join("x".join(one) for one in types)
        raise UnsupportedProblem(f"--plot: operands of {names}; one roof is for one type")
    draw_roofline(
        [_point(row) for row in valid],
        ceilings(target, next(iter(types))),
        path,
        f"{target.name}, {len(valid)} problems, modelled at the boost clock",
    )


def _point(row: Row) -> Point:
    from conv_compiler.pictures.roofline_plot import Point

    return Point(
        name=row["name"],
        series=row["direction"],
        flops=row["flops"],
        bytes=row["bytes"],
        seconds=row["seconds"],
    )
