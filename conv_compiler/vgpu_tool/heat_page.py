# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu profile --html`: a page of what a kernel executed, the busiest lines darkest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.markup import Markup, element, heat, joined, table
from conv_compiler.pictures.kernel_page import PAGE, page_of
from conv_compiler.storage.outputs import write

if TYPE_CHECKING:
    from conv_compiler.vgpu.counters import KernelCounters

_COUNTS = {
    "executed": "executions",
    "cache lines": "cache_lines",
    "LDS cycles": "lds_cycles",
    "conflict cycles": "lds_conflict_cycles",
}
Rows = Sequence[Mapping[str, Any]]


def write_heat_page(path: Path, row: KernelCounters, instructions: Rows, lines: Rows) -> None:
    """Write the page: sums, then a row a source line where there are any, and a row an instruction.

    The colour of a number is its share of the largest one in its column.
    """
    facts = {
        "chip": row.chip,
        "workgroups": f"{row.workgroups:,}, {row.waves:,} waves",
        "instructions": f"{row.total_instructions:,} of waves: "
        + ", ".join(f"{name} {count:,}" for name, count in row.instructions.items() if count),
        "memory": f"{row.global_read_bytes:,} bytes read, {row.global_write_bytes:,} written",
        "LDS": f"{row.lds_cycles:,} cycles, {row.lds_conflict_cycles:,} of them for conflicts",
    }
    parts = []
    if lines:
        parts += [element("h3", "Source lines"), _rows(lines, {"source": "source"})]
    parts += [
        element("h3", "Instructions"),
        _rows(instructions, {"at": "at", "source": "source"}),
    ]
    page = page_of(row.kernel, facts, joined([element("section", *parts)]))
    write(path, PAGE, lambda file: file.write_text(page))


def _rows(rows: Rows, names: Mapping[str, str]) -> Markup:
    most = {key: max((row[key] for row in rows), default=0) or 1 for key in _COUNTS.values()}

    def number(row: Mapping[str, Any], key: str) -> Markup:
        value = row[key]
        style = heat((value / most[key]) ** 0.5) if value else None
        return element("td", f"{value:,}" if value else "", class_="number", style=style)

    body = [
        [
            *(element("td", row[key] or "", class_="code") for key in names.values()),
            *(number(row, key) for key in _COUNTS.values()),
            element("td", row["text"], class_="code"),
        ]
        for row in rows
    ]
    return element("div", table((*names, *_COUNTS, "text"), body), class_="wide")
