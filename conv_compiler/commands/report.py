# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How results are shown: a table, the same rows as JSON, and progress on stderr.

rich is imported only when there is a terminal to draw on; elsewhere tables are aligned plain text
and progress is a line a step.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Step = Callable[[str], None]


def say(note: str) -> None:
    """One line on stderr that a user is to know, beside what was asked for."""
    print(f"conv-compiler: note: {note}", file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its header, the key of the rows it shows, and how a value is written.

    A row without the key, or with None under it, shows a dash.
    """

    header: str
    key: str
    write: Callable[[Any], str] = str
    right: bool = True

    def cell(self, row: Row) -> str:
        """The text of a row in this column."""
        value = row.get(self.key)
        return "-" if value is None else self.write(value)


def left(header: str, key: str, write: Callable[[Any], str] = str) -> Column:
    """A column of words."""
    return Column(header=header, key=key, write=write, right=False)


def right(header: str, key: str, write: Callable[[Any], str] = str) -> Column:
    """A column of numbers."""
    return Column(header=header, key=key, write=write)


def seconds(value: float) -> str:
    """A time with a unit that suits it."""
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value:.2f} s"


def show(rows: Sequence[Row], columns: Sequence[Column], as_json: bool, title: str = "") -> None:
    """Print rows to stdout: a JSON list of all keys, or a table of the columns."""
    if as_json:
        print(json.dumps([_plain(dict(row)) for row in rows], indent=1))
    elif sys.stdout.isatty():
        _rich_table(rows, columns, title)
    else:
        if title:
            print(title)
        print(plain_table(rows, columns))


def _plain(value: Any) -> Any:
    """A value without the numbers that JSON has not: NaN and infinities become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """The table as lines of aligned text, headers first."""
    cells = [[column.header for column in columns]]
    cells += [[column.cell(row) for column in columns] for row in rows]
    widths = [max(map(len, texts)) for texts in zip(*cells, strict=True)]
    lines = (
        "  ".join(
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        )
        for line in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _rich_table(rows: Sequence[Row], columns: Sequence[Column], title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: Any = "right" if column.right else "left"
        table.add_column(column.header, justify=justify, overflow="fold")
    for row in rows:
        # Cells are text, never markup: a bracket in a reason is a bracket.
        table.add_row(*(_text(column.cell(row)) for column in columns))
    Console().print(table)


def _text(cell: str) -> Any:
    from rich.text import Text

    return Text(cell, style="red" if cell.startswith(("WRONG", "REFUSED")) else "")


@contextmanager
def progress(total: int, what: str) -> Iterator[Step]:
    """A function to call at the start of each of `total` steps with a word on it.

    Draws a bar on stderr when that is a terminal; else writes a line a step, and none for one step.
    """
    begun = 0
    if total > 1 and sys.stderr.isatty():
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
            if total > 1:
                count = f"[{begun:{len(str(total))}}/{total}]"
                print(f"{count} {what} {word}", file=sys.stderr, flush=True)

        yield line
