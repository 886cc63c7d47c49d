# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler compile`: problems to `.vmfb` files that any IREE runtime can run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from conv_compiler.artifacts.embedded import VMFB
from conv_compiler.commands.arguments import Job, add_problems, jobs, read_files
from conv_compiler.commands.batch import Row, require, rows_of
from conv_compiler.commands.options import (
    add_build,
    add_output,
    add_reproducible,
    is_tuned,
    output,
    wanted,
)
from conv_compiler.commands.report import left, right, seconds, show
from conv_compiler.commands.sizes import SizesJob, add_sizes, has_sizes, size_jobs
from conv_compiler.commands.table import KERNEL, PROBLEM, artifact_row
from conv_compiler.commands.table_layout import VERBOSE
from conv_compiler.commands.together import LayerJob, add_together, layer_jobs
from conv_compiler.errors import InvalidOutput, UnsupportedProblem
from conv_compiler.storage.outputs import check_output

COLUMNS = (
    *PROBLEM,
    *KERNEL,
    right("given up", "rejected", lambda rejected: str(len(rejected)), rank=8),
    right("time", "compile_seconds", seconds, rank=7),
    left("cached", "cached", lambda cached: "yes" if cached else "no", rank=7),
    left("tuned", "tuned", rank=VERBOSE),
)
EXAMPLE = "compile -n 2 -k 8 -c 8 --image 9x9 --filter 1x1 -o x.vmfb"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_problems(parser)
    add_build(parser)
    add_reproducible(parser)
    add_together(parser)
    add_sizes(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="x.vmfb, or a folder for several (left in the cache)",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Compile every problem for every target and split asked for."""
    from conv_compiler.compiler.compile import compile
    from conv_compiler.compiler.layers import compile_layer
    from conv_compiler.compiler.sizes import compile_sizes

    sizes = size_jobs(args) if has_sizes(args) else ()
    every, how = sizes or jobs(args), wanted(args)
    layers = layer_jobs(args, every) if args.together else ()
    read = read_files(args)
    into = _folder(args.output, len(layers or every), read)

    def build(job: Job) -> Row:
        artifact = compile(job.problem, job.target.name, how, job.split_k, tuned=is_tuned(args))
        if args.output:
            strategy = artifact.strategy
            name = f"{job.problem.name}_{job.target.name}_{strategy.name}_s{strategy.split_k}"
            artifact = artifact.save(path_of(name))
        return artifact_row(artifact, job.label)

    def build_layer(job: LayerJob) -> list[Row]:
        artifact = compile_layer(job.layer, job.target.name, job.split_k, tuned=is_tuned(args))
        if args.output:
            artifact = artifact.save(path_of(f"{job.name}_{job.target.name}"))
        return [artifact_row(one, job.label) for one in artifact.artifacts]

    def build_sizes(job: SizesJob) -> list[Row]:
        artifact = compile_sizes(job.sizes, job.target.name, job.split_k, tuned=is_tuned(args))
        if args.output:
            artifact = artifact.save(path_of(f"{job.name}_{job.target.name}"))
        return [artifact_row(one, job.label) for one in artifact.artifacts]

    def path_of(name: str) -> Path:
        output: Path = into / f"{name}.vmfb" if into else args.output
        check_output(output, VMFB, read)
        return output

    if sizes:
        rows = rows_of(sizes, "compile", build_sizes)
    elif args.together:
        rows = rows_of(layers, "compile", build_layer)
    else:
        rows = rows_of(every, "compile", build)
    refused = any("error" in row for row in rows)
    form = output(args)
    result = left("result", "verdict", shape="wrap")
    show(rows, (*COLUMNS, result) if refused else COLUMNS, form)
    if form.is_table:  # a path is of use whole only
        for vmfb in dict.fromkeys(row["vmfb"] for row in rows if "vmfb" in row):
            print(f"file  {vmfb}")
    require(rows)
    return 0


def _folder(output: Path | None, count: int, read: Sequence[Path]) -> Path | None:
    """The folder to write into, made if need be; None when the output is a file or nothing.

    Raises before anything is compiled where that cannot or must not be written.
    """
    if output is None:
        return None
    if count == 1 and output.suffix == ".vmfb" and not os.path.isdir(output):
        check_output(output, VMFB, read)
        return None
    if output.suffix == ".vmfb" or os.path.isfile(output):
        raise UnsupportedProblem(
            f"-o {output}: one file for {count} problems; name a folder"
            if count > 1
            else f"-o {output}: not a .vmfb; name x.vmfb or a folder"
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidOutput(
            f"folder {output}: cannot be made ({error.strerror}); name another"
        ) from error
    return output
