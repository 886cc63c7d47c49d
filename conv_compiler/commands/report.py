# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How results are shown: a table, the same rows as JSON or CSV, and progress on stderr.

rich is imported only when there is a terminal to draw a bar on; elsewhere progress is a line a
step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conv_compiler.commands.table_layout import Column as Column
from conv_compiler.commands.table_layout import Row, middle_cut, numbered, table
from conv_compiler.commands.table_layout import left as left
from conv_compiler.commands.table_layout import right as right
from conv_compiler.parser import NAMED_GROUP
from conv_compiler.storage.notices import is_quiet

Step = Callable[[str], None]
# Columns of a table where no terminal says how many it has.
_WIDTH = 80
# What the options of `add_output` do, in one line of every help.
OUTPUT_LINE = "output: --json, --csv; -v, --verbose: all of a table; -q, --quiet: no notes"


@dataclass(frozen=True, kw_only=True)
class Output:
    """How a user wants rows: `form` is table, json or csv; `verbose` tables have all columns."""

    form: str = "table"
    verbose: bool = False

    @property
    def is_table(self) -> bool:
        """Whether a person reads it."""
        return self.form == "table"

    @property
    def width(self) -> int | None:
        """The columns that a table may take, those of the terminal; None for any number."""
        return None if self.verbose else shutil.get_terminal_size((_WIDTH, 24)).columns


TABLE = Output()


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--json`, `--csv`, `-v` and `-q`, which the last lines of a help name."""
    group = parser.add_argument_group(NAMED_GROUP)
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV, the header first")
    group.add_argument(
        "-v", "--verbose", action="store_true", help="tables with all columns and whole names"
    )
    group.add_argument(
        "-q", "--quiet", action="store_true", help="no notes and no progress on stderr"
    )
    parser.epilog = OUTPUT_LINE


def output(args: argparse.Namespace) -> Output:
    """What the arguments of `add_output` ask for."""
    form = "json" if args.json else "csv" if args.csv else "table"
    return Output(form=form, verbose=args.verbose)


def say(note: str) -> None:
    """One line on stderr that a user is to know, beside what was asked for."""
    if not is_quiet():
        print(f"conv-compiler: note: {note}", file=sys.stderr)


def seconds(value: float) -> str:
    """A time with a unit that suits it."""
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value:.2f} s"


def show(rows: Sequence[Row], columns: Sequence[Column], how: Output = TABLE) -> None:
    """Print rows to stdout: a JSON list or CSV of all keys, or a table of the columns."""
    if how.form == "json":
        print_json([dict(row) for row in rows])
    elif how.form == "csv":
        _print_csv(rows)
    else:
        for lines in _emphasised(table(rows, columns, how.width)):
            print(lines)


def show_numbered(rows: Sequence[Row], columns: Sequence[Column], key: str, how: Output) -> None:
    """`show`, with long names under `key` as numbers that lines behind a table explain."""
    if not how.is_table or how.verbose:
        return show(rows, columns, how)
    short, legend = numbered(rows, key)
    show(short, columns, how)
    for line in legend:
        print(middle_cut(line, how.width or len(line)))


def print_json(value: Any) -> None:
    """Print one JSON document, without the numbers that JSON has not."""
    print(json.dumps(_plain(value), indent=1))


def _plain(value: Any) -> Any:
    """A value without the numbers that JSON has not: NaN and infinities become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def flat(row: Row, before: str = "") -> dict[str, Any]:
    """A row as plain values: `problem.n` for what lies inside, lists as words, no lists of rows."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        elif not isinstance(value, list | tuple):
            found[before + key] = value
        elif not any(isinstance(item, dict | list | tuple) for item in value):
            found[before + key] = " ".join(map(str, value))
    return found


def _print_csv(rows: Sequence[Row]) -> None:
    """A header with the keys of all rows, in the order that they come up, then a line a row."""
    plain = [flat(row) for row in rows]
    header = dict.fromkeys(key for row in plain for key in row)
    if header:
        import csv

        writer = csv.DictWriter(sys.stdout, list(header), lineterminator="\n")
        writer.writeheader()
        writer.writerows(plain)


def _emphasised(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, on a terminal with a bold header and what is wrong in red."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    for number, lines in enumerate(rows):
        wrong = any(f"{word}:" in line for line in lines for word in ("WRONG", "REFUSED"))
        code = "1" if number == 0 else "31" if wrong else ""
        for line in lines:
            yield line if plain or not code else f"\x1b[{code}m{line}\x1b[0m"


@contextmanager
def progress(total: int, what: str) -> Iterator[Step]:
    """A function to call at the start of each of `total` steps with a word on it.

    Draws a bar on stderr when that is a terminal; else writes a line a step, and none for one step.
    Draws and writes nothing where the user asked for quiet.
    """
    begun = 0
    if total > 1 and sys.stderr.isatty() and not is_quiet():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        words = TextColumn("{task.description}", markup=False)
        columns = (BarColumn(), MofNCompleteColumn(), Elapsed(), words)
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=total)

            def step(word: str) -> None:
                nonlocal begun
                bar.update(task, completed=begun, description=f"{what} {word}")
                begun += 1

            yield step
            bar.update(task, completed=total, description=what)
    else:

        def line(word: str) -> None:
            nonlocal begun
            begun += 1
            if total > 1 and not is_quiet():
                count = f"[{begun:{len(str(total))}}/{total}]"
                print(f"{count} {what} {word}", file=sys.stderr, flush=True)

        yield line
