# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler bench`: our kernels beside those of other programs on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.arguments import Job, add_problems, jobs, read_files
from conv_compiler.commands.options import (
    add_build,
    add_device,
    add_output,
    add_reproducible,
    is_tuned,
    output,
    wanted,
)
from conv_compiler.commands.report import (
    Output,
    left,
    print_json,
    progress,
    right,
    say,
    seconds,
    show,
)
from conv_compiler.errors import (
    ConvError,
    Mismatch,
    UnsupportedProblem,
    UnsupportedStrategy,
    did_you_mean,
)
from conv_compiler.frontends.flags import size

if TYPE_CHECKING:
    from conv_compiler.benchmark.measure import Mean, Result
    from conv_compiler.problem.conv_problem import ConvProblem

EXAMPLE = "bench --layers resnet50 --only 'layer1.*' --batch 4"
LISTS = Path(__file__).parent.parent / "problems"
COLUMNS = (
    left("problem", "name", shape="cut"),
    left("side", "side"),
    right("median", "seconds", seconds),
    right("min", "least_seconds", seconds, rank=4),
    right("max", "most_seconds", seconds, rank=4),
    right("spread", "spread", lambda spread: f"{spread:.0%}", rank=1),
    right("TFLOP/s", "tflops", lambda speed: f"{speed:.3g}", rank=2),
    right("GB/s", "gb_per_s", lambda speed: f"{speed:.3g}", rank=3),
    right("/ ours", "ratio", lambda ratio: f"{ratio:.2f}"),
    left("result", "verdict", shape="wrap"),
    left("kernel", "detail", rank=5),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    parser.add_argument(
        "--layers", metavar="NAME", help="a list that comes with us, such as resnet50"
    )
    parser.add_argument("--only", metavar="PATTERNS", help="those of such names: 'layer1.*,conv1'")
    parser.add_argument(
        "--against",
        default="all",
        metavar="PEERS",
        help="torch, iree, ckprofiler, miopen (all that are here)",
    )
    parser.add_argument(
        "--through",
        choices=("torch",),
        help="ours as an op of PyTorch: f32, bf16, NCHW, NHWC",
    )
    add_build(parser)
    add_reproducible(parser)
    parser.add_argument(
        "--data",
        choices=("integers", "random"),
        metavar="KIND",
        default="integers",
        help="integers or random: what all compute on (integers)",
    )
    parser.add_argument("--rounds", type=size, default=6, metavar="R", help="turns of each (6)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor time of one thread (wall)",
    )
    parser.add_argument("--threads", type=size, metavar="N", help="of both sides on a CPU (all)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw bars against peers")
    add_device(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Measure every problem and print the table; Mismatch after it when ours is wrong."""
    from conv_compiler.benchmark import machine
    from conv_compiler.benchmark.measure import means, side_row
    from conv_compiler.benchmark.picture import draw
    from conv_compiler.pictures.plots import check_plot

    if args.plot:
        check_plot(args.plot, read_files(args))
    before = machine.load_average()
    found = _jobs(args)
    results, refused = _measured(args, found)
    facts = _facts(found, results, before)
    facts |= {"rounds": args.rounds, "clock": args.clock, "data": args.data}
    rows: list[dict[str, Any]] = [
        side_row(result, name) for result in results for name in result.sides
    ]
    rows += refused
    averages = means(results)
    how = output(args)
    if how.form == "json":
        print_json({"machine": facts, "rows": rows, "means": [asdict(row) for row in averages]})
    elif how.form == "csv":
        show(rows, COLUMNS, how)
    else:
        _print(rows, averages, facts, how)
    if args.plot:
        draw(results, args.plot, _title(facts))
    _require(rows)
    return 0


def _jobs(args: argparse.Namespace) -> tuple[Job, ...]:
    """The problems asked for, of `--layers` too, that `--only` leaves."""
    if args.layers is not None:
        known = sorted(path.stem for path in LISTS.glob("*.txt"))
        if args.layers not in known:
            near = did_you_mean(args.layers, known)
            raise UnsupportedProblem(
                f"layers {args.layers}: no such list; {near}known: {', '.join(known)}"
            )
        args.problems = [*args.problems, str(LISTS / f"{args.layers}.txt")]
    found = jobs(args)
    if args.only:
        patterns = args.only.split(",")
        kept = [job for job in found if any(fnmatchcase(job.name, one) for one in patterns)]
        if not kept:
            names = ", ".join(dict.fromkeys(job.name for job in found))
            raise UnsupportedProblem(f"only {args.only}: leaves no problem; known: {names}")
        found = tuple(kept)
    return found


def _measured(
    args: argparse.Namespace, found: Sequence[Job]
) -> tuple[list[Result], list[dict[str, Any]]]:
    """(results, rows of what was refused). A lone job's ConvError is raised."""
    from conv_compiler.benchmark.bench import bench, variants
    from conv_compiler.benchmark.ours import clocked_device
    from conv_compiler.benchmark.peers import find_peers
    from conv_compiler.benchmark.threads import clock_of
    from conv_compiler.benchmark.turns import Plan
    from conv_compiler.runtime.devices import own_device

    strategy = wanted(args)
    fixed = strategy.name or strategy.tile or strategy.script or args.split_k or not is_tuned(args)
    if args.through and fixed:
        raise UnsupportedStrategy(
            "--through torch: its op takes the best kernel; name no strategy, nor --untuned"
        )
    against = "torch" if args.through and args.against == "all" else args.against
    if args.through and against != "torch":
        raise UnsupportedProblem(f"--against {against}: --through torch is beside torch alone")
    for job in found:
        clock = clock_of(args.clock, args.threads, args.device or own_device(job.target))
    devices = {job.target.name: clocked_device(job.target, args.device) for job in found}
    peers = {}
    for device in dict.fromkeys(devices.values()):
        peers[device], absent = find_peers(against, device)
        for why in absent:
            say(f"left out: {why}")
    tasks: list[tuple[str, Job, ConvProblem]] = []
    for job in found:
        made = variants(job.problem) if args.through else {"": job.problem}
        tasks += [
            (f"{job.label} {word}".strip() if job.label else problem.name, job, problem)
            for word, problem in made.items()
        ]
    results: list[Result] = []
    refused: list[dict[str, Any]] = []
    with progress(len(tasks), "bench") as step:
        for name, job, problem in tasks:
            step(name)
            device = devices[job.target.name]
            try:
                result = bench(
                    name,
                    problem,
                    job.target,
                    device,
                    peers[device],
                    strategy=strategy,
                    split_k=job.split_k,
                    through=args.through or "",
                    tuned=is_tuned(args),
                    data=args.data,
                    plan=Plan(rounds=args.rounds),
                    clock=clock,
                )
            except ConvError as error:
                if len(tasks) == 1:
                    raise
                about = {"name": name, "side": "ours", "target": job.target.name}
                refused.append({**about, "error": str(error), "verdict": f"REFUSED: {error}"})
                continue
            results.append(result)
    return results, refused


def _facts(found: Sequence[Job], results: Sequence[Result], before: float | None) -> dict[str, Any]:
    """What was measured on, once all is."""
    from conv_compiler.benchmark import machine

    facts = {**machine.host(), "load_before": before, "load_after": machine.load_average()}
    if any("torch" in result.sides for result in results):
        facts |= machine.pytorch()
    cards = {result.device: machine.card(result.device) for result in results}
    facts["cards"] = {device: text for device, text in cards.items() if text}
    by_target = {job.target.name: machine.peaks(job.target, job.problem) for job in found}
    facts["peaks"] = {target: text for target, text in by_target.items() if text}
    return facts


def _title(facts: dict[str, Any]) -> str:
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['clock']} clock, "
        f"load {facts['load_before']} before, {facts['load_after']} after"
    )


def _print(
    rows: Sequence[dict[str, Any]], averages: Sequence[Mean], facts: dict[str, Any], how: Output
) -> None:
    print(_title(facts))
    if "torch" in facts:
        threads = f"{facts['torch_threads']} threads"
        print(f"PyTorch {facts['torch']}, oneDNN {facts['onednn']}, {threads}")
    for device, text in facts["cards"].items():
        print(f"{device}: {text}")
    for target, text in facts["peaks"].items():
        print(f"{target} at its peak: {text}")
    show(rows, COLUMNS, how)
    for row in averages:
        print(row.text)
    by_program = dict.fromkeys(row["side"] for row in rows if row.get("times_of") == "kernels")
    if by_program:
        say(f"times of {', '.join(by_program)} are of kernels alone; ours are of whole calls")


def _require(rows: Sequence[dict[str, Any]]) -> None:
    """Raise Mismatch when ours is wrong somewhere, or ConvError when it was refused."""
    ours = [row for row in rows if row["side"] == "ours"]
    for kind, bad, word in (
        (Mismatch, [row for row in ours if row.get("passed") is False], "wrong"),
        (ConvError, [row for row in ours if "error" in row], "refused"),
    ):
        if bad:
            first = bad[0]["verdict"].partition(": ")[2]
            raise kind(f"{len(bad)} of {len(ours)} {word}: {bad[0]['name']}: {first}")
