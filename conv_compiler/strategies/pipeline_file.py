# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline files of `mlir/`: the passes of a kernel and the entries between them, one a line.

A line is a pass as the compiler writes it, an entry `@name`, or `include` and another file's name.
Or it is `behind` and a pass of `passes/`, which runs when the pipeline is through, or `ours` and
one that runs where it stands, at an entry of its name. `[words]` in
front of it are the conditions under which it is taken; `{name}` in it stands for a number; `#`
begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from conv_compiler.strategies.schedule import SCRIPTS, our_entry

if TYPE_CHECKING:
    from conv_compiler.passes import Pass

_LINE = re.compile(r"(?:\[([\w -]+)\] )?(?:(include|behind|ours) )?(\S.*)")
_NONE: Mapping[str, bool] = MappingProxyType({})
_NO_OPTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
_NUMBER = re.compile(r"\{(\w+)\}")  # a pass option has a `=`


class Line(NamedTuple):
    """One line: when it is taken, what it is (a `step`, `include`, `behind` or `ours`), and its
    text."""

    conditions: frozenset[str]
    kind: str
    text: str


class Pipeline(NamedTuple):
    """What a kernel runs: compiler passes and `@entry` steps, and passes of ours among them and
    behind them, all of which `ours` names in order."""

    steps: tuple[str, ...]
    ours: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries, in order."""
        return tuple(step[1:] for step in self.steps if step[0] == "@")


def behind_contraction(
    pipeline: Pipeline, options: Mapping[str, Mapping[str, Any]] = _NO_OPTIONS
) -> dict[str, tuple[Pass, ...]]:
    """The passes of ours of a contraction's pipeline, as `Schedule.behind` has them.

    `options` are those of a pass, by its name.
    """
    from conv_compiler.passes import find_pass

    found = tuple(find_pass(name)(**options.get(name, {})) for name in pipeline.ours)
    return {"contraction": found} if found else {}


@lru_cache
def lines(name: str) -> tuple[Line, ...]:
    """The lines of `mlir/<name>.pipeline`, comments left out."""
    found = []
    for line in (SCRIPTS / f"{name}.pipeline").read_text().splitlines():
        if line and not line.startswith("#"):
            matched = _LINE.fullmatch(line)
            assert matched, f"{name}.pipeline: {line}"
            conditions, kind, text = matched.groups()
            found.append(Line(frozenset((conditions or "").split()), kind or "step", text))
    return tuple(found)


def read_pipeline(name: str, conditions: Mapping[str, bool] = _NONE, **numbers: int) -> Pipeline:
    """The lines of `mlir/<name>.pipeline` whose conditions hold, with their numbers.

    Raises KeyError where a line taken names a number that is not given.
    """
    steps: list[str] = []
    ours: list[str] = []
    for line in lines(name):
        if not all(conditions.get(condition) for condition in line.conditions):
            continue
        if line.kind == "include":
            inner = read_pipeline(line.text, conditions, **numbers)
            steps += inner.steps
            ours += inner.ours
        else:
            text = _NUMBER.sub(lambda found: str(numbers[found[1]]), line.text)
            if line.kind in ("behind", "ours"):
                ours.append(text)
            if line.kind != "behind":
                steps.append(f"@{our_entry(text)}" if line.kind == "ours" else text)
    return Pipeline(tuple(steps), tuple(ours))
