# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler inspect`: the stages of a problem as text, and the facts of its kernels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from conv_compiler.commands.arguments import add_problems, artifact_path, one
from conv_compiler.commands.facts import (
    of_one,
    print_facts,
    print_file,
    recorded,
    refuse_sizes,
)
from conv_compiler.commands.options import (
    add_build,
    add_output,
    add_untuned,
    is_tuned,
    output,
    wanted,
)
from conv_compiler.commands.report import left, right, show_numbered
from conv_compiler.compiler.stage_names import STAGES
from conv_compiler.errors import UnsupportedProblem

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem

# Dynamic counts of a run on the virtual GPU: wave-instructions by class, bytes, cache lines.
COUNTS = (
    left("kernel", "kernel", shape="cut"),
    right("workgroups", "workgroups", rank=5),
    right("waves", "waves"),
    right("matrix", "matrix"),
    right("VALU", "valu"),
    right("SALU", "salu", rank=3),
    right("LDS reads", "lds_read", rank=1),
    right("writes", "lds_write", rank=4),
    right("conflict cycles", "lds_conflict_cycles", rank=1),
    right("memory reads", "global_read", rank=2),
    right("writes", "global_write", rank=4),
    right("lines read", "global_read_lines", rank=6),
    right("barriers", "barrier", rank=7),
    right("waits", "wait", rank=7),
)
EXAMPLE = "inspect wgrad.vmfb --model"
PRINTED = STAGES[:-1]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    add_untuned(parser)
    parser.add_argument(
        "--stage",
        action="append",
        choices=PRINTED,
        metavar="STAGE",
        help=f"{' '.join(PRINTED)}",
    )
    counted = parser.add_mutually_exclusive_group()
    counted.add_argument(
        "--run",
        action="store_true",
        dest="counts",  # `run` is the command's own function
        help="count what kernels execute on the virtual GPU (AMD)",
    )
    parser.add_argument(
        "--model",
        action="store_true",
        help="model the time of every kernel of a static .vmfb (AMD)",
    )
    counted.add_argument(
        "--look",
        action="store_true",
        help="model with LDS conflicts and cache lines of a short run",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="a page: pipes, timeline, lanes, LDS banks, code (AMD)",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="the modelled timeline, for Perfetto (AMD)",
    )
    parser.add_argument(
        "--reproduce",
        type=Path,
        metavar="DIR",
        help="the stages as files, and a script of iree-compile lines",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print the stages asked for, or the facts; PROBLEM may name a `.vmfb` with its record."""
    from conv_compiler.compiler.compile import compile
    from conv_compiler.model.facts import chip_facts

    args.model |= args.look
    path = artifact_path(args)
    if path and (args.model or args.html or args.trace):
        refuse_sizes(path)
    if args.html or args.trace:
        return _draw(args, path)
    if args.reproduce:
        return _reproduce(args, path)
    if path and args.model:
        known = recorded(path)
        return _print_model(args, path, known.problem if known else None)
    if args.stage and not (args.counts or args.model):
        if args.csv:
            raise UnsupportedProblem("--csv: not for stages, which are texts; use --json")
        return _print_stages(args, path)
    if path and not args.counts:
        return print_file(args, path)
    if path:
        artifact = of_one(path)
    else:
        job = one(args)
        if args.model:
            chip_facts(job.target)  # refuse before compiling
        artifact = compile(
            job.problem, job.target.name, wanted(args), job.split_k, tuned=is_tuned(args)
        )
    if args.model:
        return _print_model(args, artifact.vmfb, artifact.problem)
    if args.counts:
        return _print_counts(args, artifact)
    print_facts(args, artifact)
    return 0


def _reproduce(args: argparse.Namespace, path: Path | None) -> int:
    """Write the folder of a module, or of the problem given, and say how to compile it."""
    from conv_compiler.compiler.compile import compile
    from conv_compiler.compiler.reproduce import SCRIPT, reproduce
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    if path:
        artifact = of_one(path)
    else:
        job = one(args)
        artifact = compile(job.problem, job.target.name, wanted(args), job.split_k)
    strategy = artifact.strategy
    resolved = resolve(artifact.problem, find_target(artifact.target), strategy.mma)
    reproduce(resolved, strategy, args.reproduce)
    print(f"sh {args.reproduce / SCRIPT}")
    return 0


def _draw(args: argparse.Namespace, path: Path | None) -> int:
    """Write the pictures asked for, and say where they are."""
    from conv_compiler.commands.draw import draw_module

    if args.counts or args.stage:
        raise UnsupportedProblem("--html and --trace: not with --run or --stage; leave those out")
    return draw_module(args, path)


def _print_model(args: argparse.Namespace, vmfb: Path, problem: ConvProblem | None) -> int:
    """Model a module's kernels, from a run's counts where one was asked for."""
    from conv_compiler.commands.model_table import model, print_model

    source = "virtual" if args.counts else "look" if args.look else "static"
    print_model(model(vmfb, source, problem), output(args))
    return 0


def _print_counts(args: argparse.Namespace, artifact: Artifact) -> int:
    """Run the artifact once on its chip's virtual device and print the counts by kernel."""
    from conv_compiler import vgpu
    from conv_compiler.errors import UnsupportedTarget
    from conv_compiler.runtime.kernel import load
    from conv_compiler.targets import find_target
    from conv_compiler.verification.slices import call_operands

    if artifact.target not in vgpu.CHIPS:
        isa = find_target(artifact.target).isa
        why = f", for {isa.not_executed}" if isa else ""
        raise UnsupportedTarget(
            f"target {artifact.target}: has no virtual device to count on{why}; "
            f"use {', '.join(vgpu.CHIPS)}"
        )
    kernel = load(artifact, "vgpu")
    with vgpu.counting():
        kernel(*call_operands(artifact.problem))
    rows = [row.to_json() for row in vgpu.counters()]
    how = output(args)
    if how.is_table:
        rows = [{**row, **row["instructions"]} for row in rows]
    show_numbered(rows, COUNTS, "kernel", how)
    return 0


def _print_stages(args: argparse.Namespace, path: Path | None) -> int:
    """Print the stages asked for, in order; the stages run as far as the last of them."""
    shown = [stage for stage in PRINTED if stage in args.stage]
    texts = _stages(args, path, shown[-1])
    if args.json:
        print(json.dumps({stage: texts[stage] for stage in shown}, indent=1))
        return 0
    for stage in shown:
        if len(shown) > 1:
            print(f"// ----- {stage} -----")
        print(texts[stage])
    return 0


def _stages(args: argparse.Namespace, path: Path | None, last: str) -> dict[str, str]:
    """Text by stage of a module's problem, or of the problem given."""
    from conv_compiler.compiler.compile import compiled_stages, stages_of
    from conv_compiler.strategies.select import choose
    from conv_compiler.targets import find_target

    if path:
        artifact = of_one(path)
        row = find_target(artifact.target)
        return stages_of(artifact.problem, row, artifact.strategy, last)
    job = one(args)
    if last == "payload":  # nothing is compiled for it
        chosen = choose(job.problem, job.target, wanted(args), job.split_k)[0]
        return stages_of(job.problem, job.target, chosen, last)
    return compiled_stages(
        job.problem, job.target.name, wanted(args), job.split_k, last, tuned=is_tuned(args)
    )
