"""`conv-compiler cache`: what the cache holds, and how to empty it."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import Any

from conv_compiler.commands.arguments import add_json
from conv_compiler.report import left, right, show

COLUMNS = (
    left("problem", "name"),
    left("target", "target"),
    right("bytes", "bytes"),
    left("last used", "used"),
    left("file", "vmfb"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show or clear the cache."""
    from conv_compiler.cache import Cache

    cache = Cache.default()
    if args.action == "clear":
        count = cache.clear()
        print(json.dumps({"cleared": count}) if args.json else f"cleared {count} artifacts")
        return 0
    rows = [_row(cache, *entry) for entry in cache.entries()]
    show(rows, COLUMNS, args.json)
    if not args.json:
        total, limit = sum(row["bytes"] for row in rows), cache.limit_bytes
        print(f"{len(rows)} artifacts, {total} bytes of at most {limit}, in {cache.folder}")
    return 0


def _row(cache: Any, key: str, size: int, used: float) -> dict[str, Any]:
    from conv_compiler.errors import ConvError, InvalidArtifact
    from conv_compiler.problem import ConvProblem
    from conv_compiler.record import Record
    from conv_compiler.typed import decoded

    vmfb, record = cache.paths(key)
    row: dict[str, Any] = {"key": key, "bytes": size, "vmfb": str(vmfb)}
    row["used"] = datetime.fromtimestamp(used).isoformat(sep=" ", timespec="seconds")
    try:
        facts = Record.of(decoded(record.read_bytes(), "record", InvalidArtifact))
        row["name"], row["target"] = ConvProblem.from_json(facts.problem).name, facts.target
    except (
        OSError,
        ConvError,
    ):  # a damaged record is shown without them; the next compile rebuilds it
        row["name"] = row["target"] = None
    return row
