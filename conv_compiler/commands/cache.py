# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler cache`: what the cache holds, and how to empty it."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import Any

from conv_compiler.commands.options import add_output, output
from conv_compiler.commands.report import left, right, show

COLUMNS = (
    left("problem", "name", shape="cut"),
    left("target", "target"),
    right("bytes", "bytes"),
    left("last used", "used", rank=1),
    left("file", "vmfb", rank=2),
)
EXAMPLE = "cache"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Show or clear the cache."""
    from conv_compiler.storage.cache import Cache
    from conv_compiler.vgpu.programs import Programs

    how = output(args)
    cache, programs = Cache.default(), Programs.default()
    if args.action == "clear":
        counts = {"cleared": cache.clear(), "programs": programs.clear()}
        text = "cleared {cleared} artifacts and {programs} decoded programs of the virtual GPU"
        if args.csv:
            show([counts], (), how)
        else:
            print(json.dumps(counts) if args.json else text.format(**counts))
        return 0
    rows = [_row(cache, *entry) for entry in cache.entries()]
    if not how.is_table:
        rows += programs.rows()
    show(rows, COLUMNS, how)
    if how.is_table:
        total, limit = sum(row["bytes"] for row in rows), cache.limit_bytes
        print(f"{len(rows)} artifacts, {total} bytes of at most {limit}, in {cache.folder}")
        print(programs.text())
    return 0


def _row(cache: Any, key: str, size: int, used: float) -> dict[str, Any]:
    from conv_compiler.artifacts.record import Record
    from conv_compiler.errors import ConvError, InvalidArtifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.storage.cache import RECORD_BYTES
    from conv_compiler.storage.private_folder import read_private
    from conv_compiler.typed import decoded

    vmfb, record = cache.paths(key)
    row: dict[str, Any] = {"key": key, "bytes": size, "vmfb": str(vmfb)}
    row["used"] = datetime.fromtimestamp(used).isoformat(sep=" ", timespec="seconds")
    try:
        text = read_private(record, RECORD_BYTES)[0]
        facts = Record.of(decoded(text, "record", InvalidArtifact))
        row["name"], row["target"] = ConvProblem.from_json(facts.problem).name, facts.target
    # A damaged record is shown without them; the next compile rebuilds it.
    except (OSError, ConvError):
        row["name"] = row["target"] = None
    return row
