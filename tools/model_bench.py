#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modelled times of our kernels beside IREE's as BOO drives it, over named sets of problems.

    tools/model_bench.py [--sets wavelet,retinanet] [--chips gfx942,...] [--types f16,bf16,f32,i8]
                         [--directions bwd_weight,fwd,bwd_data] [--batch N] [--sample N]
                         [--counts static|look|virtual] [--jobs N] [--json] [--output FILE]
                         [--keep FILE]

Both sides are the same linalg payload; both times come from the code objects through the model of
docs/model.md. These are modelled times, not measurements. With `--counts look` both start on the
virtual GPU at full size, which gives bank conflicts and cache lines; with `--counts virtual` both
run there to the end at a batch size reduced to a second's work. Ratios are told twice: at the boost
clock and at sustained rates.
Compiled modules are kept in the user's cache, and with `--keep FILE` what was modelled of them
(`kept_sides.py`): a run that was stopped goes on where it stood. `tools/sets/sets.json` names the
sets; `--sample 5` takes each fifth problem of a set. `--jobs 8` compares eight problems at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from iree_boo import compile_boo
from kept_sides import KeptSides

from conv_compiler import compile
from conv_compiler.commands.model_table import model
from conv_compiler.commands.report import left, right, seconds, show
from conv_compiler.errors import ConvError
from conv_compiler.frontends import Request, read_file
from conv_compiler.model.facts import CHIPS
from conv_compiler.model.module import ModuleModel
from conv_compiler.model.roofline import least_seconds, sustained_least_seconds
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.storage.cache import Cache
from conv_compiler.targets import Target, find_target

SETS = Path(__file__).parent / "sets" / "sets.json"
TYPES = ("f16", "bf16", "f32", "i8")
# A run on the virtual GPU takes about a second below this.
VIRTUAL_FLOPS = 2**31
# Kernels of thousands of scalar branches, as IREE makes of some small groups, take the model hours.
MOST_SECONDS = 120


def _number(value: float) -> str:
    return f"{value:.2f}"


def _known(value: float | None) -> str:
    return "-" if value is None else _number(value)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


COLUMNS = (
    left("problem", "label"),
    left("chip", "chip"),
    left("type", "dtype"),
    left("direction", "direction"),
    right("ours", "ours_seconds", seconds),
    left("bound by", "ours_binds"),
    right("busy %", "ours_busy", _percent),
    right("VALU", "ours_valu", _number),
    right("LDS reads", "ours_lds_reads", _number),
    right("IREE", "iree_seconds", seconds),
    left("bound by", "iree_binds"),
    right("busy %", "iree_busy", _percent),
    right("VALU", "iree_valu", _number),
    right("LDS reads", "iree_lds_reads", _number),
    right("ratio at boost", "ratio", _number),
    right("sustained", "sustained_ratio", _known),
    right("least", "least_seconds", seconds),
    left("note", "note"),
)
SUMMARY = (
    left("chip", "chip"),
    left("type", "dtype"),
    left("direction", "direction"),
    left("channels", "kind"),
    right("problems", "problems"),
    right("geometric mean", "mean", _number),
    right("at most", "most", _number),
    right("mean sustained", "sustained_mean", _known),
    right("at most", "sustained_most", _known),
    right("worst", "worst", _number),
    left("of", "worst_label"),
    right("below 1", "slower"),
    right("spills, scratch", "spilling"),
    right("ours failed", "ours_failed"),
    right("IREE failed", "iree_failed"),
)


def load_set(name: str) -> tuple[Request, ...]:
    """The problems of a named set, at the set's batch size.

    Raises KeyError for a name that sets.json does not have.
    """
    row = json.loads(SETS.read_text())[name]
    path = SETS.parent.parent / row["file"]
    if path.suffix == ".json":
        layers = json.loads(path.read_text())["layers"]
        found: Iterable[Request] = (
            Request(
                problem=ConvProblem.from_json(
                    {k: v for k, v in layer.items() if k not in ("name", "layer")}
                ),
                label=layer["name"],
            )
            for layer in layers
        )
    else:
        found = read_file(path)
    wanted = row.get("labels")
    return tuple(
        one.with_batch(row.get("batch")) for one in found if wanted is None or one.label in wanted
    )


def kind(problem: ConvProblem) -> str:
    """Which of the goals a problem counts for: by channels per group."""
    if min(problem.c, problem.k) >= 64:
        return "C, K >= 64"
    return "grouped" if problem.g > 1 else "C or K < 64"


def reduced(problem: ConvProblem) -> ConvProblem:
    """The problem at the largest batch size, of its own halved, that the virtual GPU soon runs."""
    n = problem.n
    while n > 1 and problem.with_batch(n).flops > VIRTUAL_FLOPS:
        n //= 2
    return problem.with_batch(n)


def side(module: ModuleModel, problem: ConvProblem) -> dict[str, Any]:
    """The columns of one compiler's module, without the compiler's name in front."""
    main = module.main.to_json()
    per = main["per_equivalent"]
    kernels = [one.code for one in module.kernels]
    return {
        "seconds": module.seconds,
        "sustained_seconds": module.sustained_seconds,
        "busy": module.matrix_busy,
        "tflops": problem.flops / module.seconds / 1e12,
        "binds": main["binds"],
        "main_seconds": main["seconds"],
        "main_busy": main["matrix_busy"],
        "counts": main["counts"],
        "workgroups": main["workgroups"],
        "waves_per_simd": main["waves_per_simd"],
        "vgprs": main["vgprs"],
        "lds_bytes": main["lds_bytes"],
        "spills": sum(code.spills for code in kernels),
        "scratch_bytes": sum(code.scratch_bytes for code in kernels),
        "dispatches": len(kernels) + len(module.fills),
        "per_equivalent": per,
        "valu": per.get("valu"),
        "lds_reads": per.get("lds_reads"),
    }


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the main thread when its Python code runs for longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"model: takes more than {seconds} s; not modelled")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def compare(
    request: Request, target: Target, cache: Cache, counts: str, kept: KeptSides
) -> dict[str, Any]:
    """One problem on one chip, ours and IREE's; what failed is named under `note`."""
    problem = reduced(request.problem) if counts == "virtual" else request.problem
    row: dict[str, Any] = {
        "label": request.label or problem.name,
        "problem": problem.name,
        "chip": target.name,
        "dtype": problem.dtype,
        "direction": problem.direction,
        "kind": kind(problem),
        "least_seconds": least_seconds(problem, target),
        "sustained_least_seconds": sustained_least_seconds(problem, target),
    }

    def columns(prefix: str, vmfb: Path) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            with time_limit(MOST_SECONDS):
                return side(model(vmfb, counts, problem), problem)

        return {f"{prefix}_{name}": value for name, value in kept.side(vmfb, counts, make).items()}

    notes = []
    try:
        artifact = compile(problem, target.name, cache=cache, tuned=False)
        row |= columns("ours", artifact.vmfb)
        row["strategy"] = artifact.strategy.text
    except (ConvError, TimeoutError) as error:
        notes.append(f"ours: {error}")
    try:
        row |= columns("iree", compile_boo(problem, target, cache))
    except (ConvError, TimeoutError) as error:
        notes.append(f"IREE: {error}")
    if "ours_seconds" in row and "iree_seconds" in row:
        row["ratio"] = row["iree_seconds"] / row["ours_seconds"]
        if row["ours_sustained_seconds"]:
            row["sustained_ratio"] = row["iree_sustained_seconds"] / row["ours_sustained_seconds"]
    row["note"] = "; ".join(notes)[:160]
    return row


@dataclass(frozen=True)
class Task:
    """One problem on one chip, and where its counts are from."""

    request: Request
    chip: str
    counts: str

    def row(self, kept: KeptSides) -> dict[str, Any]:
        """`compare` of it."""
        return compare(self.request, find_target(self.chip), Cache.default(), self.counts, kept)


def _row_apart(task: Task, kept: KeptSides) -> tuple[dict[str, Any], KeptSides]:
    """The row of a task in a process of its own, and what is known after it."""
    return task.row(kept), kept


def tasks(
    requests: Sequence[Request],
    chips: Sequence[str],
    types: Sequence[str],
    directions: Sequence[str],
    counts: str,
) -> Iterator[Task]:
    """Every problem of every type and direction on every chip."""
    for chip, dtype, direction in product(chips, types, directions):
        # As IREE's kernel multiplies it, also where a chip's default is another.
        compute = "f16" if dtype == "f16" else ""
        for request in requests:
            problem = replace(
                request.problem,
                dtype=dtype,
                weight_dtype="",
                compute=compute,
                direction=direction,
            )
            yield Task(replace(request, problem=problem), chip, counts)


def rows(every: Sequence[Task], kept: KeptSides, jobs: int) -> Iterator[dict[str, Any]]:
    """The rows of tasks in their order, `jobs` processes at work where that is more than one."""
    if jobs == 1:
        yield from (one.row(kept) for one in every)
        return
    apart = kept.apart()
    with ProcessPoolExecutor(jobs) as pool:
        for row, found in pool.map(_row_apart, every, [apart] * len(every)):
            kept.take(found)
            yield row


def mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers; None of none."""
    logarithms = list(map(math.log, values))
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def summary(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each chip, type, direction and class of channels: mean and worst of the ratios.

    `most` is what the mean would be if every kernel of ours took the least time there is.
    """
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for row in found:
        key = (row["chip"], row["dtype"], row["direction"], row["kind"])
        groups.setdefault(key, []).append(row)
    lines = []
    for (chip, dtype, direction, channels), group in groups.items():
        compared = [row for row in group if "ratio" in row]
        loaded = [row for row in compared if row.get("sustained_ratio")]
        worst = min(compared, key=lambda row: row["ratio"], default=None)
        lines.append(
            {
                "chip": chip,
                "dtype": dtype,
                "direction": direction,
                "kind": channels,
                "problems": len(group),
                "mean": mean(row["ratio"] for row in compared),
                "most": mean(row["iree_seconds"] / row["least_seconds"] for row in compared),
                "sustained_mean": mean(row["sustained_ratio"] for row in loaded),
                "sustained_most": mean(
                    row["iree_sustained_seconds"] / row["sustained_least_seconds"] for row in loaded
                ),
                "worst": worst["ratio"] if worst else None,
                "worst_label": worst["label"] if worst else None,
                "slower": sum(row["ratio"] < 1 for row in compared),
                "spilling": sum(
                    bool(row.get("ours_spills") or row.get("ours_scratch_bytes")) for row in group
                ),
                "ours_failed": sum("ours_seconds" not in row for row in group),
                "iree_failed": sum("iree_seconds" not in row for row in group),
            }
        )
    return lines


def main() -> int:
    """Parse the command line, compare, print; 1 when a problem of ours failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = list(json.loads(SETS.read_text()))
    parser.add_argument("--sets", default=",".join(known), help=f"of {', '.join(known)}")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--directions", default="bwd_weight", help=f"of {', '.join(DIRECTIONS)}")
    parser.add_argument("--batch", type=int, metavar="N", help="instead of the sets' own")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="each Nth problem")
    parser.add_argument("--counts", choices=("static", "look", "virtual"), default="static")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="problems at a time")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="write the JSON here as well")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="modelled sides, to go on with")
    arguments = parser.parse_args()
    requests = [
        one.with_batch(arguments.batch)
        for name in arguments.sets.split(",")
        for one in load_set(name)[:: arguments.sample]
    ]
    # A shape that stands in two sets is compared once.
    requests = list({(one.problem, one.label): one for one in requests}.values())
    found = []
    chips, types, directions = (
        words.split(",") for words in (arguments.chips, arguments.types, arguments.directions)
    )
    every = list(tasks(requests, chips, types, directions, arguments.counts))
    for row in rows(every, KeptSides.read(arguments.keep), arguments.jobs):
        found.append(row)
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else row["note"]
        print(
            f"[{len(found)}/{len(every)}] {row['chip']} {row['dtype']} {row['direction']} "
            f"{row['label']}: {ratio}",
            file=sys.stderr,
            flush=True,
        )
    result = {"rows": found, "summary": summary(found)}
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        print("modelled, not measured; ratio is IREE's time over ours")
        show(found, COLUMNS)
        print()
        show(result["summary"], SUMMARY)
    return 1 if any("ours_seconds" not in row for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
