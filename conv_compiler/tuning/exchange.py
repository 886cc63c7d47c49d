# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries of the tuning store as JSON lines, for other machines and other people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from conv_compiler.compiler.compile import compilation_key
from conv_compiler.errors import ConvError, TuningStoreRefused
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.storage.tuning_store import Tuned
from conv_compiler.strategies.select import is_candidate
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.targets import find_target
from conv_compiler.targets.resolve import resolve
from conv_compiler.typed import decoded, typed

_KEY = re.compile(r"[0-9a-f]{64}")


def line_of(entry: Tuned) -> str:
    """One line, which `entry_of` reads back."""
    return json.dumps(entry.to_json(), sort_keys=True)


def entry_of(line: str) -> Tuned:
    """The entry of a line.

    Raises TuningStoreRefused for one that is no entry. One of this compiler and these sources must
    be true: its key that of its problem, its strategy one that is tried for it.
    """
    values = typed(
        decoded(line, "entry", TuningStoreRefused), dict[str, Any], "entry", TuningStoreRefused
    )
    entry = typed(values, Tuned, "entry", TuningStoreRefused)
    if not _KEY.fullmatch(entry.key) or not 0 < entry.seconds < float("inf"):
        raise TuningStoreRefused("entry: no key or no time; export it again")
    if not entry.is_stale:
        try:
            _check(entry)
        except TuningStoreRefused:
            raise
        except ConvError as error:
            raise TuningStoreRefused(f"entry of {entry.target}: {error}") from error
    return entry


def _check(entry: Tuned) -> None:
    problem, target = ConvProblem.from_json(entry.problem), find_target(entry.target)
    strategy = Strategy.from_json(entry.strategy)
    key = compilation_key(problem.for_kind(target.has_fnuz, target.has_xf32), target, None, "auto")
    if key != entry.key:
        if target.chip == "host":  # another kind of host, where it will be found
            return
        raise TuningStoreRefused(f"entry of {problem.name}: its key is another's; export it again")
    if not is_candidate(resolve(problem, target), strategy):
        raise TuningStoreRefused(
            f"entry of {problem.name}: {strategy.text} is not tried for it; tune it again"
        )


def entries_of(
    lines: Iterable[str], refused: Callable[[int, TuningStoreRefused], None]
) -> list[Tuned]:
    """The entries of lines; `refused` is told the number of each bad line, and why."""
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(entry_of(line))
        except TuningStoreRefused as error:
            refused(number, error)
    return found
