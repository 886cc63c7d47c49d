# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler tuning`: what the tuning store holds, out of it and into it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.options import add_output, output
from conv_compiler.commands.report import left, right, show
from conv_compiler.commands.speed import time_text
from conv_compiler.errors import TuningStoreRefused
from conv_compiler.storage.outputs import Kind, check_output, write

if TYPE_CHECKING:
    from conv_compiler.storage.tuning_store import Tuned, TuningStore

COLUMNS = (
    left("problem", "name", shape="cut"),
    left("target", "target"),
    left("strategy", "strategy", rank=1),
    right("tried", "tried", rank=3),
    right("time", "", time_text),
    left("stale", "stale", lambda stale: "yes" if stale else "no"),
    left("device", "device", rank=2),
)
EXAMPLE = "tuning export tuned.jsonl"
ACTIONS = ("list", "export", "import", "prune", "clear")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="list",
        help="list; export, import JSON lines; prune stale entries; clear all",
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="of export and import; - for stdout and stdin (-)"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Do one of the actions."""
    from conv_compiler.storage.tuning_store import TuningStore

    store = TuningStore.default()
    if args.file and args.action not in ("export", "import"):
        raise TuningStoreRefused(f"file {args.file}: not for {args.action}; leave it out")
    if args.action == "export":
        return _export(store, args.file or "-")
    if args.action == "import":
        return _import(store, args)
    if args.action == "list":
        return _list(store, args)
    if args.action == "prune":
        count = store.prune()
    else:
        from conv_compiler.storage.fitted_costs import forget_fitted_costs

        count = store.clear() + forget_fitted_costs()
    return _say(args, {"removed": count}, "removed {removed} entries")


def _export(store: TuningStore, file: str) -> int:
    from conv_compiler.tuning.exchange import line_of

    text = "".join(f"{line_of(entry)}\n" for entry in store.entries())
    if file == "-":
        print(text, end="")
        return 0
    path = Path(file)
    check_output(path, LINES, (store.path,))

    def fill(whole: Path) -> None:
        whole.write_text(text)

    write(path, LINES, fill)
    return 0


def _is_export(path: Path) -> bool:
    """Whether a file is empty, or its first line is an entry."""
    from conv_compiler.tuning.exchange import entry_of

    with path.open(errors="replace") as lines:
        first = lines.readline(2**20)
    try:
        return not first or bool(entry_of(first))
    except TuningStoreRefused:
        return False


LINES = Kind(name="an export of a tuning store", is_one=_is_export)


def _import(store: TuningStore, args: argparse.Namespace) -> int:
    from conv_compiler.tuning.exchange import entries_of

    name = args.file or "-"
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TuningStoreRefused(f"file {name}: {reason}; give an exported one") from error
    args.refused = 0

    def refused(number: int, error: TuningStoreRefused) -> None:
        args.refused += 1
        print(f"conv-compiler: error: {name}:{number}: {error}", file=sys.stderr)

    found = entries_of(text.splitlines(), refused)
    if args.refused and not found:
        raise TuningStoreRefused(f"file {name}: holds no entry; give an exported one")
    counts = {
        "imported": store.put(found, keep_measured=True),
        "stale": sum(entry.is_stale for entry in found),
        "refused": args.refused,
    }
    return _say(args, counts, "imported {imported} entries, {stale} of them stale")


def _list(store: TuningStore, args: argparse.Namespace) -> int:
    rows = [_row(entry) for entry in store.entries()]
    how = output(args)
    show(rows, COLUMNS, how)
    if how.is_table:
        stale = sum(row["stale"] for row in rows)
        print(f"{len(rows)} entries, {stale} of them stale, in {store.path}")
    return 0


def _row(entry: Tuned) -> dict[str, Any]:
    from conv_compiler.errors import ConvError
    from conv_compiler.problem.conv_problem import ConvProblem

    try:
        name = ConvProblem.from_json(entry.problem).name
    except ConvError:  # of a version that had other fields
        name = "-"
    row = entry.to_json() | {"name": name, "strategy": entry.text, "stale": entry.is_stale}
    if not entry.measured:
        row["modelled_seconds"] = row.pop("seconds")
    return row


def _say(args: argparse.Namespace, counts: dict[str, int], text: str) -> int:
    if args.csv:
        show([counts], (), output(args))
    else:
        print(json.dumps(counts) if args.json else text.format(**counts))
    return 0
