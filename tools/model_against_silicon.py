#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model against published, measured times of AMD GPUs.

    tools/model_against_silicon.py [--compile iree|all] [--counts static|look] [--sample N]
                                   [--output FILE] [--json]

Every record is held against the roofline, at the peaks and at sustained rates: no kernel is faster.
With `--compile iree` the kernels that IREE made are modelled too: IREE's own for the same
operation, by the compiler that is installed, and ours beside it. With `--compile all` ours is
modelled for each Nth convolution of other software (`--sample`). Nothing runs on a GPU.
A third of the records is held out of every fit; errors are told for each part.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from iree_boo import compile_boo, compile_text, gemm_payload
from published_times import Gemm, Record, published

from conv_compiler import compile
from conv_compiler.commands.model_table import model
from conv_compiler.commands.report import left, right, seconds, show
from conv_compiler.errors import ConvError
from conv_compiler.model.module import ModuleModel
from conv_compiler.model.roofline import Work, least, peak_flops, sustained_least
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.cache import Cache
from conv_compiler.targets import find_target

# Sources have three digits, and so have the facts.
DIGITS = 0.01
# Of IREE's records, what its compiler makes without a tuning spec or a flag of its own.
NOT_DEFAULT = ("tuned", "DMA on", "without split", "no split", "regression", "iree-benchmark")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _time(value: float | None) -> str:
    return "-" if value is None else seconds(value)


ERRORS = (
    left("compared", "compared"),
    left("chip", "chip"),
    left("bound by", "bound"),
    left("part", "part"),
    right("records", "records"),
    right("bias at boost", "boost_bias", _number),
    right("bias sustained", "bias", _number),
    right("spread", "spread", _number),
    right("rank correlation", "correlation", _number),
    right("within the range", "within"),
)
VIOLATIONS = (
    left("record", "id"),
    left("chip", "chip"),
    left("operation", "what"),
    right("measured", "measured", seconds),
    right("least at boost", "least", seconds),
    right("least sustained", "sustained_least", _time),
    left("class", "class"),
)
KERNELS = (
    left("record", "id"),
    left("chip", "chip"),
    right("measured", "measured", seconds),
    right("IREE at boost", "iree", _time),
    right("sustained", "iree_sustained", _time),
    left("bound by", "iree_bound"),
    right("ours at boost", "ours", _time),
    right("sustained", "ours_sustained", _time),
    left("note", "note"),
)


def bound(work: Work, chip: str) -> str:
    """What binds an operation at the peaks."""
    target = find_target(chip)
    arithmetic = work.flops / peak_flops(work.operands, target)
    memory = work.bytes / target.memory_gb_per_s / 1e9
    launch = target.pipes.launch_seconds if target.pipes else 0.0
    if launch >= max(arithmetic, memory):
        return "launch"
    return "matrix" if arithmetic >= memory else "memory"


def bounded(record: Record) -> dict[str, Any]:
    """A record beside the least times of its operation."""
    target = find_target(record.chip)
    work = record.work(target)
    return {
        "id": record.id,
        "chip": record.chip,
        "what": record.what,
        "class": record.kind,
        "trusted": record.trusted,
        "part": "held out" if record.held_out else "open",
        "measured": record.seconds,
        # Who measures repeats a call, so that small tensors stay in the last-level cache.
        "least": least(work, target, resident=True),
        "sustained_least": sustained_least(work, target, resident=True),
        "roofline_bound": bound(work, record.chip),
        "iree_default": record.is_iree and not any(one in record.software for one in NOT_DEFAULT),
        "note": "",
    }


def faster_than_least(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that are faster than the roofline, at either end, by more than rounding."""
    return [
        row
        for row in rows
        if max(row["least"], row["sustained_least"] or 0.0) > row["measured"] * (1 + DIGITS)
    ]


@cache
def iree_model(chip: str, operation: ConvProblem | Gemm, counts: str) -> ModuleModel:
    """IREE's kernels of an operation."""
    target, kept = find_target(chip), Cache.default()
    if isinstance(operation, ConvProblem):
        return model(compile_boo(operation, target, kept), counts, operation)
    return model(compile_text(gemm_payload(**vars(operation)), target, kept), counts)


@cache
def our_model(chip: str, problem: ConvProblem, counts: str) -> ModuleModel:
    """Our kernels of a problem."""
    vmfb = compile(problem, chip, cache=Cache.default(), tuned=False).vmfb
    return model(vmfb, counts, problem)


def _side(name: str, make: Callable[[], ModuleModel]) -> dict[str, Any]:
    """One compiler's columns, or the reason why there are none."""
    try:
        module = make()
    except ConvError as error:
        return {"note": f"{name}: {error}"[:160]}
    main = module.main
    return {
        name: module.seconds,
        f"{name}_sustained": module.sustained_seconds,
        f"{name}_bound": (main.sustained or main.estimate).binds,
        f"{name}_launches": len(module.kernels) + len(module.fills),
    }


def modelled(record: Record, row: dict[str, Any], counts: str, iree: bool) -> dict[str, Any]:
    """The row with what the model says of IREE's kernel, where it made the record's, and ours."""
    operation = record.operation
    if iree and isinstance(operation, Gemm) and operation.layout:
        row |= _side("iree", lambda: iree_model(record.chip, operation, counts))
    if isinstance(operation, ConvProblem):
        if iree:
            row |= _side("iree", lambda: iree_model(record.chip, operation, counts))
        row |= _side("ours", lambda: our_model(record.chip, operation, counts))
    return row


def ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 0, of equal values their mean."""
    _, where, times = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(times) - (times + 1) / 2)[where]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's; None of fewer than three values, or of values that are all equal."""
    first, second = ranks(a), ranks(b)
    if len(a) < 3 or first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def error(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """How far modelled times lie from measured ones.

    The bias is the geometric mean of modelled over measured, the spread the factor at one standard
    deviation of its logarithm; both of the sustained end unless named otherwise.
    """
    ends = [(row[name], row[f"{name}_sustained"], row["measured"]) for row in rows]
    logs = np.log([sustained / measured for _, sustained, measured in ends])
    boost = np.log([low / measured for low, _, measured in ends])
    return {
        "records": len(rows),
        "boost_bias": math.exp(boost.mean()),
        "bias": math.exp(logs.mean()),
        "spread": math.exp(logs.std()),
        "correlation": rank_correlation([end[1] for end in ends], [end[2] for end in ends]),
        "within": sum(low <= measured <= high for low, high, measured in ends),
    }


def errors(rows: Sequence[dict[str, Any]], name: str, bound_name: str) -> list[dict[str, Any]]:
    """The errors of all rows that have times by `name`: by part, chip and bound."""
    rows = [row for row in rows if row.get(name) and row.get(f"{name}_sustained")]
    found = []
    for part in ("open", "held out"):
        some = [row for row in rows if row["part"] == part]
        keys = sorted({(row["chip"], row[bound_name]) for row in some})
        groups = [((chip, what), chip, what) for chip, what in keys]
        chips = sorted({row["chip"] for row in some})
        for chip in chips:
            group = [row for row in some if row["chip"] == chip]
            found.append({"chip": chip, "bound": "all", "part": part, **error(group, name)})
        for key, chip, what in groups:
            group = [row for row in some if (row["chip"], row[bound_name]) == key]
            found.append({"chip": chip, "bound": what, "part": part, **error(group, name)})
        if some:
            found.append({"chip": "all", "bound": "all", "part": part, **error(some, name)})
    return [{"compared": name, **row} for row in found]


def report(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything that is told of some rows."""
    roofline = [
        {**row, "roofline": row["least"], "roofline_sustained": row["sustained_least"]}
        for row in rows
        if row["trusted"]
    ]
    default = [row for row in rows if row["iree_default"] and row["trusted"]]
    return {
        "records": len(rows),
        "trusted": sum(row["trusted"] for row in rows),
        "faster_than_least": faster_than_least(rows),
        "errors": [
            *errors(roofline, "roofline", "roofline_bound"),
            *errors(default, "iree", "iree_bound"),
        ],
        "rows": list(rows),
    }


def print_report(told: dict[str, Any]) -> None:
    """As tables."""
    print(f"{told['records']} published times, {told['trusted']} of them trusted")
    print("modelled over measured; the roofline is a bound, not a prediction\n")
    show(told["errors"], ERRORS)
    print("\nfaster than the least time:")
    show(told["faster_than_least"], VIOLATIONS)
    if kernels := [row for row in told["rows"] if "ours" in row or "iree" in row]:
        print("\nkernels:")
        show(kernels, KERNELS)


def main() -> int:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", choices=("iree", "all"), help="whose kernels are modelled")
    parser.add_argument("--counts", choices=("static", "look"), default="static")
    parser.add_argument("--sample", type=int, default=3, metavar="N", help="each Nth convolution")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", type=Path, help="write the JSON here as well, as it grows")
    arguments = parser.parse_args()
    rows, others = [], 0
    for record in published():
        row = bounded(record)
        others += isinstance(record.operation, ConvProblem) and not record.is_iree
        picked = arguments.compile == "all" and others % arguments.sample == 0
        if arguments.compile and (record.is_iree or picked):
            row = modelled(record, row, arguments.counts, record.is_iree)
            print(
                f"{record.id}: {row.get('iree')} {row.get('ours')} {row['note']}", file=sys.stderr
            )
            if arguments.output:
                arguments.output.write_text(json.dumps({"rows": [*rows, row]}, indent=1) + "\n")
        rows.append(row)
    told = report(rows)
    if arguments.output:
        arguments.output.write_text(json.dumps(told, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(told, indent=1))
    else:
        print_report(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
