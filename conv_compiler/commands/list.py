# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler list`: the rows of the tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from conv_compiler.commands.arguments import add_json
from conv_compiler.commands.report import Column, left, right, show
from conv_compiler.errors import UnsupportedTarget
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES, TERMS, TYPE_PAIRS, WIDER
from conv_compiler.problem.elementwise import ELEMENTWISE
from conv_compiler.problem.layouts import LAYOUTS
from conv_compiler.targets import TARGETS, Target

Rows = list[dict[str, Any]]
# What `cpu` takes, a CPU by name takes too.
_CHIPS = tuple(row for row in TARGETS.values() if row.processor is None)


def _words(values: Any) -> str:
    return " ".join(map(str, values)) or "-"


def _targets() -> Rows:
    return [
        {
            "name": row.name,
            "backend": row.backend,
            "compute_units": _units(row),
            "subgroup_size": row.subgroup_size if row.is_gpu else None,
            "lds_bytes": row.lds_bytes if row.is_gpu else None,
            "mma": [mma.name for mma in row.mma],
            "needs": list(row.processor.extensions) if row.processor else [],
        }
        for row in TARGETS.values()
    ]


def _units(row: Target) -> int | None:
    """What work is distributed to; None for the host, whose cores are counted when it compiles."""
    if row.is_gpu:
        return row.compute_units
    return row.processor.cores if row.processor else None


def _layouts() -> Rows:
    return [{f"{n}D": row.spell(n) for n in (1, 2, 3)} | {"folded": row.folded} for row in LAYOUTS]


def _dtypes() -> Rows:
    def names(data: str, want: str) -> list[str]:
        return [row.name for row in _CHIPS if _how(data, row) == want]

    # (what the user writes, the result's type, what is multiplied); terms are of f32.
    rows = [(data, weight, data) for data, weight in TYPE_PAIRS]
    rows += [
        (f"{data} as {name}", weight, row.dtype)
        for name, row in CONVERSIONS.items()
        for data, weight in TYPE_PAIRS
        if data in row.of and data != row.dtype
    ]
    rows += [(f"f32 as {name}", "f32", terms.dtype) for name, terms in TERMS.items()]
    return [
        {
            "dtype": data,
            "weight_dtype": weight,
            "accumulator": DTYPES[multiplied].accumulator,
            "targets": names(multiplied, "matrix"),
            "wider": names(multiplied, "wider"),
            "vector": names(multiplied, "vector"),
        }
        for data, weight, multiplied in rows
    ]


def _how(data: str, target: Target) -> str:
    """What multiplies data of a type: matrix instructions of it, those of bf16, or vector code."""
    if target.mma_for(data):
        return "matrix"
    if target.is_gpu and DTYPES[data].cpu_only:
        return "none"
    return "wider" if DTYPES[data].is_f8 and target.mma_for(WIDER) else "vector"


def _elementwise() -> Rows:
    return [
        {"op": row.signature, "d": "weight's type, f32" if row.takes_d else "-", "text": row.text}
        for row in ELEMENTWISE.values()
    ]


def _strategies() -> Rows:
    from conv_compiler.strategies.registry import STRATEGIES

    return [
        {
            "name": row.name,
            "targets": [t.name for t in _CHIPS if t.backend in row.backends],
            "description": row.description,
            "tile": row.tile,
        }
        for row in STRATEGIES.values()
    ]


# what -> (its rows, its columns)
LISTS: MappingProxyType[str, tuple[Callable[[], Rows], tuple[Column, ...]]] = MappingProxyType(
    {
        "targets": (
            _targets,
            (
                left("target", "name"),
                left("backend", "backend"),
                right("units", "compute_units"),
                right("subgroup", "subgroup_size"),
                right("LDS", "lds_bytes"),
                left("matrix instructions", "mma", _words),
                left("needs of a CPU", "needs", _words),
            ),
        ),
        "layouts": (
            _layouts,
            (
                left("1D", "1D"),
                left("2D", "2D"),
                left("3D", "3D"),
                left("groups in channels", "folded", lambda folded: "yes" if folded else "no"),
            ),
        ),
        "dtypes": (
            _dtypes,
            (
                left("data", "dtype"),
                left("weight", "weight_dtype"),
                left("accumulator", "accumulator"),
                left("matrix instructions on", "targets", _words),
                left("as bf16 on", "wider", _words),
                left("vector code on", "vector", _words),
            ),
        ),
        "elementwise": (
            _elementwise,
            (
                left("op", "op"),
                left("tensor d", "d"),
                left("on the sum x", "text"),
            ),
        ),
        "strategies": (
            _strategies,
            (
                left("strategy", "name"),
                left("targets", "targets", _words),
                left("what it does", "description"),
                left("a tile is", "tile"),
            ),
        ),
    }
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("what", choices=tuple(LISTS))
    parser.add_argument(
        "--check",
        action="store_true",
        help="targets: compare every row with what the compiler reports of the chip or the CPU",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print a table; with --check, UnsupportedTarget after it when a row is wrong."""
    rows, columns = LISTS[args.what]
    if not args.check:
        show(rows(), columns, args.json)
        return 0
    if args.what != "targets":
        raise UnsupportedTarget(f"--check: not for {args.what}; use it with list targets")
    return _check(args.json)


def _check(as_json: bool) -> int:
    from conv_compiler.commands.report import progress
    from conv_compiler.compiler.check_targets import check_target

    known = [row for row in TARGETS.values() if row.is_gpu or row.processor]
    rows: Rows = []
    with progress(len(known), "check") as step:
        for target in known:
            step(target.name)
            wrong = check_target(target)
            rows.append({"name": target.name, "wrong": list(wrong), "right": not wrong})
    columns = (
        left("target", "name"),
        left("against the compiler", "wrong", lambda wrong: "; ".join(wrong) or "right"),
    )
    show(rows, columns, as_json)
    if bad := [row["name"] for row in rows if row["wrong"]]:
        raise UnsupportedTarget(
            f"targets {', '.join(bad)}: the table and the compiler differ; mend the rows"
        )
    return 0
