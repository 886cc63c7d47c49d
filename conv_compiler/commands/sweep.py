# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler sweep`: every admissible strategy and split of a problem, timed and checked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.arguments import add_problems, jobs, read_files
from conv_compiler.commands.options import add_build, add_device, add_output, output, wanted
from conv_compiler.commands.report import progress, show
from conv_compiler.commands.speed import measured
from conv_compiler.frontends.flags import size

if TYPE_CHECKING:
    from conv_compiler.commands.arguments import Job
    from conv_compiler.strategies.strategy import Strategy
    from conv_compiler.tuning.sweep import Trial

# Of strategies whose time is modelled, so many of the best are run on the virtual GPU.
CHECKS = 3
EXAMPLE = "sweep -n 2 -k 16 -c 8 --image 9x9 --filter 3x3"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    add_device(parser)
    parser.add_argument(
        "--checks",
        type=size,
        metavar="N",
        help=f"verify the N fastest (all timed, {CHECKS} of those modelled)",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw the times: tiles by splits"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each, the fastest first, and the best; Mismatch when a kernel is wrong."""
    from conv_compiler.errors import Mismatch, UnsupportedProblem

    args.split_k = "all" if args.split_k is None else args.split_k
    found = jobs(args)
    if len({(job.problem, job.target) for job in found}) > 1:
        raise UnsupportedProblem("problem: several given, counting targets; sweep takes one")
    if args.plot:
        from conv_compiler.pictures.plots import check_plot

        check_plot(args.plot, read_files(args))
    rows = _rows(args, found)
    how = output(args)
    if args.plot:
        _draw(args.plot, found[0], rows)
    if how.is_table:
        _print(found[0], rows)
    else:
        show(rows, (), how)
    wrong = [row for row in rows if row.get("passed") is False]
    if wrong:
        raise Mismatch(f"{len(wrong)} of {len(rows)} wrong: {wrong[0]['strategy']}")
    return 0


def _rows(args: argparse.Namespace, found: tuple[Job, ...]) -> list[dict[str, Any]]:
    """A row for each strategy: those that compiled, fastest first, then those with an `error`.

    Raises the first of these where none compiled.
    """
    from conv_compiler.errors import CompileFailed, ConvError, StrategyNotApplied
    from conv_compiler.tuning.sweep import admissible, trial
    from conv_compiler.verification.verify import verify_artifact

    problem, target = found[0].problem, found[0].target
    strategies = admissible(problem, target, wanted(args), [job.split_k for job in found])
    timed: list[Trial] = []
    refused: list[tuple[Strategy, ConvError]] = []
    with progress(len(strategies), "sweep") as step:
        for strategy in strategies:
            step(strategy.text)
            try:
                timed.append(trial(problem, target, strategy, args.device))
            except (CompileFailed, StrategyNotApplied) as error:
                refused.append((strategy, error))
    if not timed:
        raise refused[0][1]
    timed.sort(key=lambda trial: trial.seconds)
    rows = []
    for number, one in enumerate(timed):
        checks = args.checks or (len(timed) if one.measured else CHECKS)
        report = verify_artifact(one.artifact, device=args.device) if number < checks else None
        rows.append(
            {
                **_named(one.strategy),
                "seconds": one.seconds,
                "time": "measured" if one.measured else "modelled",
                "tflops": problem.flops / one.seconds / 1e12,
                "gb_per_s": problem.bytes / one.seconds / 1e9,
                **(measured(problem, target, one.times) if one.times else {}),
                "passed": report.passed if report else None,
                "verdict": report.verdict if report else "not run",
                "vmfb": str(one.artifact.vmfb),
            }
        )
    return rows + [{**_named(strategy), "error": str(error)} for strategy, error in refused]


def _named(strategy: Strategy) -> dict[str, Any]:
    return {
        "strategy": strategy.text.removesuffix(f" split_k={strategy.split_k}"),
        "split_k": strategy.split_k,
    }


def _draw(path: Path, job: Job, rows: list[dict[str, Any]]) -> None:
    from conv_compiler.pictures.tile_map import draw_tile_map

    valid = [row for row in rows if "error" not in row]
    times = {(row["strategy"], row["split_k"]): row["seconds"] for row in valid}
    draw_tile_map(times, path, f"{job.problem.name} on {job.target.name} ({valid[0]['time']})")


def _print(job: Job, rows: list[dict[str, Any]]) -> None:
    """Lines as ckProfiler's, each with how its time was found and whether it is right."""

    def speed(row: dict[str, Any]) -> str:
        return f"{row['tflops']:.6g} TFlops, {row['gb_per_s']:.6g} GB/s"

    def named(row: dict[str, Any]) -> str:
        return f"{row['strategy']}, SplitK {row['split_k']}"

    print(f"{job.problem.name} on {job.target.name}")
    valid = [row for row in rows if "error" not in row]
    for row in valid:
        share = row.get("of_peak")
        how = row["time"] if share is None else f"{row['time']}, {100 * share:.1f}% of peak"
        print(
            f"Perf: {row['seconds'] * 1e3:10.4f} ms, {speed(row)}, {named(row)} "
            f"({how}, {row['verdict']})"
        )
    for row in rows[len(valid) :]:
        print(f"refused: {named(row)}: {row['error']}")
    best = valid[0]
    print(f"valids: {len(valid)}, refused by their own proof: {len(rows) - len(valid)}")
    print(
        f"Best Perf: {best['seconds'] * 1e3:.4f} ms, {speed(best)}, {named(best)} ({best['time']})"
    )
