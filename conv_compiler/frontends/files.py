# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems in files and in JSON: one line a problem, or JSON objects.

An object has ConvProblem's fields, or is an event or a whole trace of PyTorch's profiler.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conv_compiler.errors import UnsupportedProblem
from conv_compiler.frontends import (
    benchdnn,
    ck_examples,
    ckprofiler,
    flags,
    fusilli,
    miopen,
    torch_trace,
)
from conv_compiler.frontends.request import Request, parse_split_k
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.typed import decoded, typed

# What an object may state beside its problem.
_OWN: MappingProxyType[str, Any] = MappingProxyType(
    {"split_k": int | str | tuple[int | str, ...], "label": str | int}
)
# A comment starts at a word's beginning: `-# 2` is MIOpenDriver's depth stride.
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")


_PARSERS = MappingProxyType(
    {
        **dict.fromkeys(miopen.PROGRAMS, miopen.parse),
        "ckProfiler": ckprofiler.parse,
        benchdnn.PROGRAM: benchdnn.parse,
        fusilli.PROGRAM: fusilli.parse,
        **dict.fromkeys(ck_examples.PROGRAMS, ck_examples.parse),
    }
)
_DRIVERS = (*miopen.PROGRAMS, fusilli.PROGRAM, "ckProfiler", benchdnn.PROGRAM)
# What a shell sets for one command.
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def starts_line(word: str) -> bool:
    """Whether a word opens a line of another program, or is what its log or a shell has before."""
    if word in (*miopen.OPERATIONS, *ckprofiler.OPERATIONS) or word.startswith("MIOpen(HIP)"):
        return True
    if _program(word) in _PARSERS:
        return True
    return bool(_ASSIGNMENT.fullmatch(word)) and not Path(word).exists()


def _from_program(tokens: Sequence[str]) -> Sequence[str]:
    """The line from its program on: without a log's words, a shell's settings, a launcher."""
    if tokens and tokens[0].startswith("-"):
        return tokens
    for at, word in enumerate(tokens):
        if _program(word) in _PARSERS:
            return tokens[at:]
    settings = list(itertools.takewhile(_ASSIGNMENT.fullmatch, tokens))
    return tokens[len(settings) :]


def parse_tokens(tokens: Sequence[str]) -> tuple[Request, ...]:
    """The requests of one line in any of the forms, recognised by its program or first word."""
    tokens = _from_program(tokens)
    first = tokens[0] if tokens else ""
    program = _program(first)
    if program in _PARSERS:
        return _PARSERS[program](tokens)
    if fusilli.starts(tokens):
        return fusilli.parse(tokens)
    if first in miopen.OPERATIONS:
        return miopen.parse(tokens)
    if first in ckprofiler.OPERATIONS:
        return ckprofiler.parse(tokens)
    if program.startswith(("example_", "client_")):
        return ck_examples.parse(tokens)
    if first == "--conv":
        return benchdnn.parse(tokens)
    if first.startswith("-"):
        return flags.parse(tokens)
    # An operation of either program that is not built gets that program's own reason.
    if "conv_" in first:
        return ckprofiler.parse(tokens)
    if first.startswith("conv"):
        return miopen.parse(tokens)
    raise UnsupportedProblem(
        f"{first or 'line'}: starts no problem; use a line of {', '.join(_DRIVERS)}, our flags, or "
        "JSON"
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
    return tuple(replace(request, label=label or request.label) for request in parse_tokens(tokens))


def parse_json(text: str) -> tuple[Request, ...]:
    """The requests of a JSON object or list; `split_k` and `label` may stand in each object."""
    value = decoded(text, "JSON", UnsupportedProblem)
    items = value if isinstance(value, list) else [value]
    return tuple(request for item in items for request in _from_object(item))


def _from_object(item: Any) -> tuple[Request, ...]:
    if torch_trace.is_trace(item):
        return torch_trace.parse_trace(item)
    if torch_trace.is_event(item):
        return torch_trace.parse_event(item)
    return (_from_fields(item),)


def _from_fields(item: Any) -> Request:
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


# What is told of an unsound line of several; without one, the first is raised.
Refused = Callable[[UnsupportedProblem], None]


def read_file(path: Path, refused: Refused | None = None) -> tuple[Request, ...]:
    """The requests of a file; see `parse_text`.

    Raises UnsupportedProblem for a file that cannot be read or that holds no sound problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no text, or a name that no file can have
        reason = getattr(error, "strerror", None) or "not text"
        raise UnsupportedProblem(f"file {path}: {reason}; name a file of problems") from None
    return parse_text(text, str(path), refused)


def parse_text(text: str, name: str, refused: Refused | None = None) -> tuple[Request, ...]:
    """The requests of a text: JSON as a whole, or a problem a line, `#` opening a comment.

    `refused` is called for each unsound line where others are sound. Raises UnsupportedProblem,
    with `name` and the line where there is a name, for the first unsound line without `refused` or
    without a sound one, and for a text without problems.
    """
    at = f"{name}:" if name else ""
    found: list[Request] = []
    errors: list[UnsupportedProblem] = []
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if _is_problem(line)]
    whole = _is_json_document([line for _, line in lines])
    for number, line in [(1, text)] if whole else lines:
        try:
            found += parse_json(line) if whole else parse_line(line)
        except UnsupportedProblem as error:
            errors.append(UnsupportedProblem(f"{at}{number}: {error}" if at else str(error)))
            if refused is None:
                break
    if errors and (refused is None or not found):
        raise errors[0]
    if not found:
        raise UnsupportedProblem(f"{name or 'text'}: holds no problem; write one a line")
    for one in errors:
        assert refused is not None
        refused(one)
    return tuple(found)


def _is_problem(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_json_document(lines: Sequence[str]) -> bool:
    """Whether the lines are one JSON value, not one a line."""
    if not lines or not lines[0].lstrip().startswith(("{", "[")):
        return False
    return len(lines) == 1 or not lines[0].rstrip().endswith("}")
