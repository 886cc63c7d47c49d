# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems in files and in JSON: one line a problem, or JSON objects with ConvProblem's fields."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import ck_examples, ckprofiler, flags, miopen
from conv_compiler.frontends.request import Request, parse_split_k
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.typed import decoded, typed

# What an object may state beside its problem.
_OWN: MappingProxyType[str, Any] = MappingProxyType(
    {"split_k": int | str | tuple[int | str, ...], "label": str | int}
)
# A comment starts at a word's beginning: `-# 2` is MIOpenDriver's depth stride.
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")


def starts_line(word: str) -> bool:
    """Whether a word opens a line of MIOpenDriver, ckProfiler or a Composable Kernel example."""
    if word in (*miopen.OPERATIONS, *ckprofiler.OPERATIONS):
        return True
    return word.rpartition("/")[2] in ("MIOpenDriver", "ckProfiler", *ck_examples.PROGRAMS)


def parse_tokens(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The requests of one line in any of the forms, recognised by its first word."""
    first = tokens[0] if tokens else ""
    program = first.rpartition("/")[2]
    if program == "MIOpenDriver" or first in miopen.OPERATIONS:
        return miopen.parse(tokens)
    if program == "ckProfiler" or first in ckprofiler.OPERATIONS:
        return ckprofiler.parse(tokens)
    if program in ck_examples.PROGRAMS or program.startswith(("example_", "client_")):
        return ck_examples.parse(tokens)
    if first.startswith("-"):
        return flags.parse(tokens)
    # An operation of either program that is not built gets that program's own reason.
    if "conv_" in first:
        return ckprofiler.parse(tokens)
    if first.startswith("conv"):
        return miopen.parse(tokens)
    raise UnsupportedProblem(
        f"{first or 'line'}: starts no problem; use a MIOpenDriver line, a ckProfiler line, our "
        "flags, or JSON"
    )


def parse_line(text: str) -> tuple[Request, ...]:
    """The requests of one line of text; a comment behind it becomes their label."""
    if text.lstrip().startswith(("{", "[")):
        return parse_json(text)
    comment = _COMMENT.search(text)
    body = text[: comment.start()] if comment else text
    try:
        tokens = shlex.split(body)
    except ValueError as error:
        raise UnsupportedProblem(f"line {body.strip()}: {error}; close the quote") from None
    label = comment.group(1).strip() if comment else ""
    return tuple(replace(request, label=label) for request in parse_tokens(tokens))


def parse_json(text: str) -> tuple[Request, ...]:
    """The requests of a JSON object or list; `split_k` and `label` may stand in each object."""
    value = decoded(text, "JSON", UnsupportedProblem)
    return tuple(_from_object(item) for item in (value if isinstance(value, list) else [value]))


def _from_object(item: Any) -> Request:
    values = dict(item) if isinstance(item, dict) else item
    split_k, label = (
        typed(values.pop(name), hint, name, UnsupportedProblem)
        if isinstance(values, dict) and name in values
        else None
        for name, hint in _OWN.items()
    )
    return Request(
        problem=ConvProblem.from_json(values),
        split_k=() if split_k is None else parse_split_k(split_k, "split_k"),
        label="" if label is None else str(label),
    )


def read_file(path: Path) -> tuple[Request, ...]:
    """The requests of a file; see `parse_text`.

    Raises UnsupportedProblem for a file that cannot be read or that holds no sound problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no text, or a name that no file can have
        reason = getattr(error, "strerror", None) or "not text"
        raise UnsupportedProblem(f"file {path}: {reason}; name a file of problems") from None
    return parse_text(text, str(path))


def parse_text(text: str, name: str) -> tuple[Request, ...]:
    """The requests of a text: JSON as a whole, or a problem a line, `#` opening a comment.

    Raises UnsupportedProblem, with `name` and the line where there is a name, for the first unsound
    line and for a text without problems.
    """
    at = f"{name}:" if name else ""
    found: list[Request] = []
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if _is_problem(line)]
    whole = _is_json_document([line for _, line in lines])
    for number, line in [(1, text)] if whole else lines:
        try:
            found += parse_json(line) if whole else parse_line(line)
        except UnsupportedProblem as error:
            raise UnsupportedProblem(f"{at}{number}: {error}" if at else str(error)) from None
    if not found:
        raise UnsupportedProblem(f"{name or 'text'}: holds no problem; write one a line")
    return tuple(found)


def _is_problem(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_json_document(lines: Sequence[str]) -> bool:
    """Whether the lines are one JSON value, not one a line."""
    if not lines or not lines[0].lstrip().startswith(("{", "[")):
        return False
    return len(lines) == 1 or not lines[0].rstrip().endswith("}")
