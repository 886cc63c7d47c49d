# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler demo`: the whole way for every layer of ResNet-50, on the CPU and for a GPU.

Every layer is compiled for the CPU, run there, held against the float64 reference on two kinds of
data, and timed. Then it is compiled for a GPU, and the code object is read.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.batch import require
from conv_compiler.commands.options import add_output, output
from conv_compiler.commands.report import progress, show
from conv_compiler.commands.table import KERNEL, PROBLEM, artifact_row
from conv_compiler.commands.verify import RESULT, report_row
from conv_compiler.frontends import Request, read_file
from conv_compiler.frontends.flags import size
from conv_compiler.targets import find_target

if TYPE_CHECKING:
    from conv_compiler.verification.verify import Report

LAYERS = Path(__file__).parent.parent / "problems" / "resnet50.txt"
COLUMNS = (*PROBLEM, *(column.ranked(column.rank + 3) for column in KERNEL), *RESULT)
EXAMPLE = "demo --batch 2"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--target", default="gfx942", metavar="T", help="the GPU to compile for (gfx942)"
    )
    parser.add_argument("--batch", type=size, metavar="N", help="batch size (that of the file)")
    parser.add_argument(
        "--problems",
        type=Path,
        default=LAYERS,
        metavar="FILE",
        help="other layers (ResNet-50)",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Do it all and print the table; Mismatch after it when a kernel is wrong."""
    from conv_compiler.compiler.compile import compile

    started = time.perf_counter()
    layers = [request.with_batch(args.batch) for request in read_file(args.problems)]
    target = find_target(args.target)
    reports: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    with progress(2 * len(layers), "demo") as step:
        for layer in layers:
            name = layer.label or layer.problem.name
            step(f"{name}: compile, run and verify on the CPU")
            exact, close = _on_cpu(layer)
            row = report_row(close, name)
            if not exact.passed:
                row |= {"passed": False, "verdict": exact.verdict}
            reports.append(row)
            step(f"{name}: compile for {target.name}")
            compiled = artifact_row(compile(layer.problem, target.name), name)
            rows += [row, compiled | {"verdict": "compiled"}]
    title = (
        f"{args.problems.stem}: weight gradients in {layers[0].problem.dtype}; error: largest "
        "difference from float64 over largest value, on random data"
    )
    how = output(args)
    if how.is_table:
        print(title)
    show(rows, COLUMNS, how)
    require(reports)
    if how.is_table:
        minutes, seconds = divmod(round(time.perf_counter() - started), 60)
        print(
            f"{len(layers)} layers: exact on integers, within tolerance on random data and bitwise "
            f"repeatable on the CPU; compiled for {target.name}; {minutes} min {seconds} s"
        )
    return 0


def _on_cpu(layer: Request) -> tuple[Report, Report]:
    """The reports on integer and on random data; the second is timed."""
    from conv_compiler.compiler.compile import compile
    from conv_compiler.verification.verify import verify_artifact

    artifact = compile(layer.problem, "cpu")
    return (
        verify_artifact(artifact, "integers"),
        verify_artifact(artifact, "random", budget=0.2),
    )
