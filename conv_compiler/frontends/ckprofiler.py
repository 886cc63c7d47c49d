# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckProfiler lines: `ckProfiler grouped_conv_bwd_weight 1 2 0 1 0 1 2 32 4 64 64 3 3 ... all`.

Arguments are positional, in the order of their operation (`ckprofiler_operations.py`); channels are
per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem, did_you_mean
from conv_compiler.frontends.ckprofiler_operations import (
    NOTHING,
    OCP_NOTE,
    SIZES,
    SPATIAL,
    TABLES,
    UNBUILT,
    UNUSED,
    Operation,
    Row,
)
from conv_compiler.frontends.ckprofiler_operations import (
    OPERATIONS as OPERATIONS,
)
from conv_compiler.frontends.request import Request, is_count, is_number
from conv_compiler.problem.conv_problem import ConvProblem


def parse(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The request of one line, with or without the leading program name.

    Raises UnsupportedProblem naming the argument that is missing, malformed or not built.
    """
    words = list(tokens)
    if words and words[0].rpartition("/")[2] == "ckProfiler":
        words = words[1:]
    name = words[0] if words else ""
    if name in UNBUILT:
        raise UnsupportedProblem(
            f"{name}: {UNBUILT[name]}; compile its convolution, with one of them as --elementwise"
        )
    if (operation := OPERATIONS.get(name)) is None:
        near = did_you_mean(name, OPERATIONS)
        raise UnsupportedProblem(
            f"{name or 'line'}: not an operation of ckProfiler; {near}use {', '.join(OPERATIONS)}"
        )
    words, names = words[1:], operation.head
    if "--instances" in words:
        raise UnsupportedProblem(
            "--instances: lists ckProfiler's kernels and states no problem; "
            "conv-compiler list strategies lists ours, conv-compiler sweep times those of a problem"
        )
    refuse_flags(words, "ckProfiler")
    if len(words) < len(names):
        raise UnsupportedProblem(
            f"{names[len(words)]}: missing; {name} starts with {' '.join(names)}"
        )
    head = dict(zip(names, words, strict=False))
    for unused in UNUSED:
        read_integer(unused, head[unused])
    for name_of_table, table in TABLES.items():
        if name_of_table in head:
            _row(name_of_table, head[name_of_table], table)
    types = _row("dtype", head["dtype"], operation.dtypes, operation.unbuilt_dtypes)
    data, result, compute = types
    elementwise = operation.elementwise
    if "op" in head:
        elementwise = _row("op", head["op"], operation.ops)
    layout = _row("layout", head["layout"], operation.layouts, operation.unbuilt_layouts)
    sizes, split_k = read_sizes(name, head["ndim"], words[len(names) :], operation.split_k)
    problem = ConvProblem(
        direction=operation.direction,
        layout=layout,
        dtype=data,
        weight_dtype=result,
        compute=compute,
        elementwise=elementwise,
        **sizes,
    )
    note = OCP_NOTE if problem.data_type.is_f8 else ""
    return (_with_split(Request(problem=problem, note=note), split_k, operation),)


def _with_split(request: Request, word: str, operation: Operation) -> Request:
    """The request with the split that a word asks for, and a note where that is not what it says.

    Raises UnsupportedProblem for a word that is neither in the operation's table nor a number.
    """
    if not word:
        return request
    if (known := operation.splits.get(word)) is None:
        if not (is_count(word) and int(word) >= 1):
            words = ", ".join(operation.splits)
            raise UnsupportedProblem(
                f"splitK {word}: not a split; use {f'{words}, or ' if words else ''}"
                "a number of 1 or more"
            )
        known = (int(word),)
    note = ""
    if word == "0":
        note = f"splitK 0: Composable Kernel takes it as {', '.join(map(str, known))}, and so do we"
    return replace(request, split_k=known, note=note)


# Numbers of words behind the sizes.
_BEHIND = MappingProxyType({"needed": (1,), "allowed": (0, 1), "": (0,)})


def read_sizes(
    name: str, dimensions: str, words: Sequence[str], split_k: str = ""
) -> tuple[dict[str, Any], str]:
    """(the problem's sizes by field, the split behind them, empty without one).

    Raises UnsupportedProblem where the words are not G N K C and the spatial arguments of so many
    dimensions, or malformed.
    """
    ndim = read_integer("ndim", dimensions)
    if ndim not in (1, 2, 3):
        raise UnsupportedProblem(f"ndim {ndim}: not a number of dimensions; use 1, 2 or 3")
    expected = len(SIZES) + len(SPATIAL) * ndim
    if len(words) - expected not in _BEHIND[split_k]:
        behind = {"needed": " and splitK", "allowed": " and splitK or nothing", "": ""}
        raise UnsupportedProblem(
            f"{name}: {len(words)} arguments behind ndim {ndim}; it takes {expected}"
            f"{behind[split_k]}: G N K C, {ndim} each of {', '.join(SPATIAL)}"
        )
    rest = iter(words)
    sizes: dict[str, Any] = {size: read_integer(size, next(rest)) for size in SIZES}
    for kind in SPATIAL:
        sizes[kind] = tuple(read_integer(kind, next(rest)) for _ in range(ndim))
    return sizes, next(rest, "")


def refuse_flags(words: Sequence[str], program: str) -> None:
    """Raise UnsupportedProblem where a flag stands among the numbers of a line."""
    if flag := next((word for word in words if word.startswith("-") and not is_number(word)), ""):
        raise UnsupportedProblem(
            f"{flag}: not an argument of {program} that states a problem; drop it, or put a flag "
            f"of conv-compiler before {program}"
        )


def read_integer(name: str, text: str) -> int:
    """The number a word states; UnsupportedProblem unless it is an integer of 0 or more."""
    if not is_count(text):
        raise UnsupportedProblem(f"{name} {text}: not an integer of 0 or more; mend the line")
    return int(text)


def _row(
    name: str,
    digit: str,
    table: Mapping[str, Row],
    unbuilt: Mapping[str, str] = NOTHING,
) -> Row:
    """The row of a digit; UnsupportedProblem for one that is unknown or not built."""
    if digit in table:
        return table[digit]
    why = f"means {unbuilt[digit]}, which is not built" if digit in unbuilt else "not in the table"
    known = ", ".join(f"{d} ({_spell(row)})" for d, row in table.items())
    raise UnsupportedProblem(f"{name} {digit}: {why}; use {known}")


def _spell(row: object) -> str:
    return "/".join(row) if isinstance(row, tuple) else str(row)
