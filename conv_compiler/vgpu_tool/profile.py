# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu profile`: what a kernel executes, as sums, by source line, or by instruction; its model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.report import left, output, print_json, right, show
from conv_compiler.errors import InvalidArtifact
from conv_compiler.vgpu_tool.launching import Asked, add_launch, asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conv_compiler.binary.source_lines import SourceLines
    from conv_compiler.vgpu import KernelCounters


def _count(value: int) -> str:
    return f"{value:,}" if value else ""


_WHAT = (
    right("executed", "executions", _count),
    right("cache lines", "cache_lines", _count),
    right("LDS cycles", "lds_cycles", _count),
    right("conflict cycles", "lds_conflict_cycles", _count),
)
COUNTS = (left("count", "count"), right("value", "value", _count))
BY_LINE = (left("source", "source"), *_WHAT, left("text", "text", shape="cut"))
BY_INSTRUCTION = (
    left("at", "at"),
    left("source", "source", rank=1),
    *_WHAT,
    left("instruction", "text", shape="cut"),
)
LINE, INSTRUCTION = "line", "instruction"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_launch(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--by", choices=(LINE, INSTRUCTION), help="a row a source line, or an instruction"
    )
    shown.add_argument("--model", action="store_true", help="the modelled time of its pipes")
    parser.add_argument("--html", type=Path, metavar="FILE", help="a page of all of it")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="the modelled timeline, for Perfetto"
    )


def run(args: argparse.Namespace) -> int:
    """Launch it, and print the counts."""
    from conv_compiler.vgpu import counters, counting

    launch = asked(args, checks=False)
    if args.by == LINE and not launch.kernel.lines:
        raise InvalidArtifact(
            f"{args.file}: has no line table; compile it with debug information, or count "
            f"--by {INSTRUCTION}"
        )
    if args.html:
        from conv_compiler.pictures.kernel_page import check_page

        check_page(args.html, [args.file])
    if args.trace:
        from conv_compiler.pictures.chrome_trace import check_trace

        check_trace(args.trace, [args.file])
    with counting():
        launch.run()
    (row,) = counters()
    by_instruction = instructions(launch, row) if args.by or args.html else []
    by_line = lines(launch.kernel.lines, by_instruction)
    if args.html:
        from conv_compiler.vgpu_tool.heat_page import write_heat_page

        write_heat_page(args.html, row, by_instruction, by_line)
    how = output(args)
    if args.model or args.trace:
        from conv_compiler.vgpu_tool.launch_model import modelled, print_launch, write_timeline

        found = modelled(launch, row)
        if args.trace:
            write_timeline(args.trace, found)
    if args.model:
        print_launch(found, how)
    elif args.by == INSTRUCTION:
        show(by_instruction, BY_INSTRUCTION, how)
    elif args.by == LINE:
        show(by_line, BY_LINE, how)
    elif how.is_table:
        show(_sums(row), COUNTS, how)
    else:
        print_json(row.to_json())
    return 0


def _sums(row: KernelCounters) -> list[dict[str, Any]]:
    """Every count that is not 0, by its name."""
    counts: dict[str, Any] = row.to_json()
    by_class = counts.pop("instructions").items()
    flat = {**{f"{name} instructions": count for name, count in by_class}, **counts}
    return [
        {"count": name.replace("_", " "), "value": value}
        for name, value in flat.items()
        if isinstance(value, int) and value
    ]


def instructions(launch: Asked, row: KernelCounters) -> list[dict[str, Any]]:
    """A row for each instruction that was executed, in the order of the code."""
    from conv_compiler.binary.symbols import code_symbols
    from conv_compiler.vgpu.listing import listing

    kernel = launch.kernel
    first = code_symbols(kernel.elf).get(kernel.note.name)
    if first is None:
        raise InvalidArtifact(
            f"kernel {kernel.note.name}: its code has no symbol; compile it again"
        )
    uses = {use.offset: use for use in row.lds_uses}
    found = []
    for address, text in listing(kernel.elf, kernel.device.chip):
        at = address - first
        if at not in row.executions:
            continue
        place = kernel.lines.at(address)
        found.append(
            {
                "at": f"0x{address:x}",
                "source": place and place.text,
                "file": place and place.file,
                "line": place and place.line,
                "executions": row.executions[at],
                "cache_lines": row.lines.get(at, 0),
                "lds_cycles": uses[at].cycles if at in uses else 0,
                "lds_conflict_cycles": uses[at].conflict_cycles if at in uses else 0,
                "text": text,
            }
        )
    return found


def lines(table: SourceLines, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each source line of instructions' rows, the one that is executed most first; code
    without a line is under None. Empty where the code object has no line table."""
    if not table:
        return []
    sums: dict[tuple[str, int], dict[str, Any]] = {}
    for one in rows:
        place = table.at(int(one["at"], 16))
        named = {name: one[name] for name in ("source", "file", "line")}
        text = place.quoted() if place else ""
        _add(sums.setdefault((one["file"], one["line"]), {**named, "text": text}), one)
    return sorted(sums.values(), key=lambda one: -one["executions"])


def _add(into: dict[str, Any], one: Mapping[str, Any]) -> None:
    for column in _WHAT:
        into[column.key] = into.get(column.key, 0) + one[column.key]
