# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`vgpu check`: a kernel run with every check on, and what was found where."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.report import left, output, right, show
from conv_compiler.errors import LaunchFailed
from conv_compiler.vgpu_tool.launching import add_launch, asked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conv_compiler.binary.source_lines import Place
    from conv_compiler.vgpu import Finding

FINDINGS = (
    left("kind", "kind", lambda kind: kind or "fault"),
    left("at", "at"),
    left("source", "source"),
    left("instruction", "text"),
    left("workgroup", "workgroup"),
    right("wave", "wave"),
    right("lane", "lane"),
    left("detail", "detail", rank=1),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_launch(parser)
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="findings as SARIF too")


def run(args: argparse.Namespace) -> int:
    """Print a row for each finding; 1 where there is one."""
    from conv_compiler.vgpu import findings
    from conv_compiler.vgpu_tool.sarif import sarif

    launch = asked(args, checks=True)
    found: tuple[Finding, ...] = ()
    try:
        launch.run()
    except LaunchFailed as error:
        # What stopped the launch is told once more behind the findings.
        places = {
            (one.address, one.workgroup, one.wave, one.lane): one
            for one in reversed(findings(str(error)))
        }
        found = tuple(reversed(places.values()))
        if not found:
            raise
    lines = launch.kernel.lines
    told = [(one, lines.at(one.address)) for one in found]
    if args.sarif:
        args.sarif.write_text(sarif(args.file, told))
    how = output(args)
    if how.is_table and not found:
        print("no findings")
    elif how.is_table:
        rows = [{**row, "source": place and place.text} for row, (_, place) in _rows(told)]
        show(rows, FINDINGS, how)
        for place in dict.fromkeys(place for _, place in told):
            if place and place.quoted():
                print(place.described())
    else:
        show([row for row, _ in _rows(told)], FINDINGS, how)
    return 1 if found else 0


def _rows(
    told: Iterable[tuple[Finding, Place | None]],
) -> Iterable[tuple[dict[str, Any], tuple[Finding, Place | None]]]:
    """Each finding as plain values, with the place in the source."""
    for one, place in told:
        source = place and place._asdict()
        yield {**one.to_json(), "at": f"0x{one.address:x}", "source": source}, (one, place)
