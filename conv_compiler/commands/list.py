# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler list`: the rows of the tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from conv_compiler.commands.options import add_output, output
from conv_compiler.commands.report import Column, Output, left, right, show
from conv_compiler.commands.table_layout import VERBOSE
from conv_compiler.errors import UnsupportedTarget
from conv_compiler.problem.dtypes import CONVERSIONS, DTYPES, TERMS, TYPE_PAIRS, WIDER
from conv_compiler.problem.elementwise import ELEMENTWISE, Elementwise
from conv_compiler.problem.layouts import LAYOUTS, MIXED
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
            "matrix_types": list(dict.fromkeys(dtype for mma in row.mma for dtype in mma.operands)),
            "mma": [mma.name for mma in row.mma],
            "needs": list(row.processor.extensions) if row.processor else [],
        }
        for row in TARGETS.values()
    ]


def _short_types(types: list[str]) -> str:
    """Types of operands in a few words: 8-bit floats are one."""
    return _words(dict.fromkeys("f8" if name.startswith("f8") else name for name in types))


def _units(row: Target) -> int | None:
    """What work is distributed to; None for the host, whose cores are counted when it compiles."""
    if row.is_gpu:
        return row.compute_units
    return row.processor.cores if row.processor else None


def _layouts() -> Rows:
    return [
        {f"{n}D": row.spell(n) for n in (1, 2, 3)} | {"folded": row.folded}
        for row in (*LAYOUTS, *MIXED)
    ]


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
    if target.multiplies(data):
        return "matrix"
    if DTYPES[data].multiplied_only or (target.is_gpu and DTYPES[data].cpu_only):
        return "none"
    return "wider" if DTYPES[data].is_f8 and target.mma_for(WIDER) else "vector"


def _d_of(row: Elementwise) -> str:
    return {
        "": "-",
        "element": "the result's shape",
        "channel": "a number a channel",
        "call": "a number",
    }[row.d_per]


def _elementwise() -> Rows:
    return [
        {"op": row.signature, "d": _d_of(row), "text": row.text} for row in ELEMENTWISE.values()
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
                left("matrix instructions of", "matrix_types", _short_types),
                left("matrix instructions", "mma", _words, rank=VERBOSE),
                left("needs of a CPU", "needs", _words, rank=VERBOSE),
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
                left("matrix instructions on", "targets", _words, shape="wrap"),
                left("as bf16 on", "wider", _words, rank=2, shape="wrap"),
                left("vector code on", "vector", _words, rank=1, shape="wrap"),
            ),
        ),
        "elementwise": (
            _elementwise,
            (
                left("op", "op"),
                left("tensor d", "d"),
                left("on the sum x", "text", shape="wrap"),
            ),
        ),
        "strategies": (
            _strategies,
            (
                left("strategy", "name"),
                left("targets", "targets", _words, rank=VERBOSE),
                left("what it does", "description", shape="wrap"),
                left("a tile is", "tile", shape="wrap", rank=1),
            ),
        ),
    }
)


EXAMPLE = "list targets"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("what", choices=tuple(LISTS))
    parser.add_argument(
        "--check",
        action="store_true",
        help="targets: compare every row with the compiler's",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print a table; with --check, UnsupportedTarget after it when a row is wrong."""
    how = output(args)
    rows, columns = LISTS[args.what]
    if not args.check:
        show(rows(), columns, how)
        return 0
    if args.what != "targets":
        raise UnsupportedTarget(f"--check: not for {args.what}; use it with list targets")
    return _check(how)


def _findings(wrong: list[str]) -> str:
    return "; ".join(wrong) or "right"


def _check(how: Output) -> int:
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
        left("against the compiler", "wrong", _findings, shape="wrap"),
    )
    show(rows, columns, how)
    if bad := [row["name"] for row in rows if row["wrong"]]:
        raise UnsupportedTarget(
            f"targets {', '.join(bad)}: the table and the compiler differ; mend the rows"
        )
    return 0
