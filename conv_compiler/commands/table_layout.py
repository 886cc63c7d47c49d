# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables as text: columns, which of them a width has room for, and how long cells are shortened."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]

# A column of this rank is shown with --verbose only.
VERBOSE = 9
_BETWEEN = "  "


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its header, the key of the rows it shows, and how a value is written.

    A row without the key, or with None under it, shows a dash; without a key, `write` takes the
    row. Where a table is too wide, the columns of the highest `rank` go first; those of rank 0
    stay. `shape` says what becomes of a long cell: it stays whole, it is cut in the middle, or it
    takes several lines.
    """

    header: str
    key: str
    write: Callable[[Any], str] = str
    right: bool = True
    rank: int = 0
    shape: str = "whole"

    def cell(self, row: Row) -> str:
        """The text of a row in this column."""
        value = row.get(self.key) if self.key else row
        return "-" if value is None else self.write(value)

    def ranked(self, rank: int) -> Column:
        """The same column with another rank."""
        return replace(self, rank=rank)

    def least(self, width: int) -> int:
        """The least room for cells that would take `width`."""
        return min(width, max(len(self.header), _LEAST.get(self.shape, width)))


# Letters that a shortened cell keeps at least, by shape.
_LEAST = MappingProxyType({"cut": 20, "wrap": 24})


def left(
    header: str,
    key: str,
    write: Callable[[Any], str] = str,
    *,
    rank: int = 0,
    shape: str = "whole",
) -> Column:
    """A column of words."""
    return Column(header=header, key=key, write=write, right=False, rank=rank, shape=shape)


def right(header: str, key: str, write: Callable[[Any], str] = str, *, rank: int = 0) -> Column:
    """A column of numbers."""
    return Column(header=header, key=key, write=write, rank=rank)


def middle_cut(text: str, width: int) -> str:
    """A text that fits a width: its beginning and its end, as `bwd_weight_n32...f16`.

    The end has the type; of a wider column it has a third of the room beyond.
    """
    if len(text) <= width:
        return text
    end = 3 + max(0, width - 20) // 3
    return f"{text[: width - 3 - end]}...{text[-end:]}"


@dataclass(frozen=True)
class _Laid:
    """A column with its cells and the room it gets."""

    column: Column
    cells: tuple[str, ...]
    width: int

    @property
    def natural(self) -> int:
        return max(map(len, (self.column.header, *self.cells)))

    @property
    def least(self) -> int:
        return self.column.least(self.natural)

    def lines(self, number: int) -> list[str]:
        """A cell as lines of the column's width; an empty cell has one."""
        text = self.cells[number]
        if self.column.shape == "wrap" and len(text) > self.width:
            return textwrap.wrap(text, self.width)
        return [middle_cut(text, self.width) if self.column.shape == "cut" else text]

    def placed(self, text: str) -> str:
        return text.rjust(self.width) if self.column.right else text.ljust(self.width)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def table(rows: Sequence[Row], columns: Sequence[Column], width: int | None) -> list[list[str]]:
    """A table as lines, those of one row together, the headers first.

    With a width, columns without a value are left out, then columns by their rank, until the
    others have room; then long cells are shortened. Without one, all is shown whole.
    """
    laid = [
        _Laid(column, tuple(column.cell(row) for row in rows), 0)
        for column in columns
        if width is None or column.rank < VERBOSE
    ]
    if width is None:
        laid = [replace(one, width=one.natural) for one in laid]
    else:
        laid = _fitted([one for one in laid if not one.column.rank or {*one.cells} - {"-"}], width)
    head = _BETWEEN.join(one.placed(one.column.header) for one in laid).rstrip()
    return [[head], *(_row_lines(laid, number) for number in range(len(rows)))]


def _fitted(laid: list[_Laid], width: int) -> list[_Laid]:
    """The columns that a width has room for, each with its share."""
    while _total([one.least for one in laid]) > width:
        last = max(laid, key=lambda one: one.column.rank)
        if not last.column.rank:
            break
        laid.remove(last)
    room = max(0, width - _total([one.least for one in laid]))
    fitted = []
    for one in laid:
        more = min(room, one.natural - one.least)
        fitted.append(replace(one, width=one.least + more))
        room -= more
    return fitted


def _row_lines(laid: Sequence[_Laid], number: int) -> list[str]:
    cells = zip_longest(*(one.lines(number) for one in laid), fillvalue="")
    return [
        _BETWEEN.join(one.placed(text) for one, text in zip(laid, line, strict=True)).rstrip()
        for line in cells
    ]


def numbered(rows: Sequence[Row], key: str, longest: int = 24) -> tuple[list[Row], list[str]]:
    """Rows whose long names are numbers, and the lines that say what the numbers stand for.

    Names of at most `longest` letters stay.
    """
    if all(len(str(row[key])) <= longest for row in rows):
        return list(rows), []
    digits = len(str(len(rows)))
    legend = [f"{number:{digits}}  {row[key]}" for number, row in enumerate(rows, 1)]
    return [{**row, key: str(number)} for number, row in enumerate(rows, 1)], legend
