# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler doctor`: a card tried whole, and one file about it that can be sent to us."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from conv_compiler.commands.options import add_output, completed_device, output
from conv_compiler.commands.report import Output, left, print_json, progress, right, seconds, show
from conv_compiler.commands.speed import time_text
from conv_compiler.errors import Mismatch
from conv_compiler.frontends import read_file
from conv_compiler.frontends.flags import size
from conv_compiler.storage.outputs import Kind, check_output, write

LISTS = Path(__file__).parent.parent / "problems"
FILE = Path("conv-compiler-doctor.json")
COLUMNS = (
    left("problem", "name"),
    left("kernel", "text", rank=1),
    right("time", "", time_text),
    right("model", "model_seconds", seconds, rank=2),
    right("/ model", "ratio", lambda ratio: f"{ratio:.2f}"),
    left("result", "verdict", shape="wrap"),
)
EXAMPLE = "doctor --device hip -o my-card.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    completed_device(
        parser.add_argument(
            "--device", metavar="D", default="hip", help="hip, hip://1, vgpu, vgpu-checked (hip)"
        )
    )
    parser.add_argument("--target", metavar="T", help="the card's chip (what its driver says)")
    parser.add_argument(
        "-o", "--output", type=Path, default=FILE, metavar="FILE", help=f"where to write ({FILE})"
    )
    parser.add_argument(
        "--first", type=size, metavar="N", help="of each list the first N problems alone (all)"
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Examine a card; Mismatch after the table, and the file, where a kernel is wrong or none."""
    from conv_compiler.doctor.examine import examine, target_of

    check_output(args.output, FOUND)
    lists = []
    for name in ("doctor_verification", "doctor_benchmark"):
        asked = read_file(LISTS / f"{name}.txt")[: args.first]
        lists.append([(one.label or one.problem.name, one.problem) for one in asked])
    target = target_of(args.device, args.target)
    bar = progress(sum(map(len, lists)), "doctor")
    found = examine(target, args.device, lists[0], lists[1], bar)
    text = json.dumps(found, indent=1)

    def fill(path: Path) -> None:
        path.write_text(f"{text}\n")

    write(args.output, FOUND, fill)
    how = output(args)
    if how.form == "json":
        print_json(found)
    else:
        _print(found, how, args.output)
    wrong = [*found["summary"]["wrong_or_refused"], *found["summary"]["not_timed"]]
    if wrong:
        count = sum(map(len, lists))
        raise Mismatch(
            f"{len(wrong)} of {count} wrong or refused: {wrong[0]}; {args.output} says more, "
            "send it to us"
        )
    return 0


def _print(found: dict[str, Any], how: Output, path: Path) -> None:
    rows = [_row(row) for kind in ("verification", "benchmark") for row in found[kind]]
    if not how.is_table:
        return show(rows, COLUMNS, how)
    hip, kfd = found["card"]["hip"] or {}, found["card"]["kfd"] or {}
    print(f"{found['target']} on {found['device']}: {hip.get('name') or kfd.get('name') or '-'}")
    for line in found["differs"]:
        print(f"differs  {line}")
    show(rows, COLUMNS, how)
    short = found["summary"]
    right_ones = short["verified"] - len(short["wrong_or_refused"])
    print(f"{right_ones} of {short['verified']} right, {short['timed']} timed")
    if short["measured_over_modelled"]:
        print(
            f"measured / modelled: geometric mean {short['measured_over_modelled']:.2f}, from "
            f"{short['least_over_modelled']:.2f} to {short['most_over_modelled']:.2f}"
        )
    print(f"file  {path}")
    print("Look at the file, then send it to us with an issue; its `holds` says what is in it.")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    model, times = row.get("model"), row.get("times")
    verdict = "timed" if times else "modelled"
    if "error" in row:
        verdict = f"REFUSED: {row['error']}"
    elif "passed" in row:
        verdict = "right" if row["passed"] else f"WRONG: {row['verdicts']}"
    return {
        "name": row["name"],
        "text": row.get("text"),
        "seconds": times["median"] if times else None,
        "modelled_seconds": model["seconds"] if model else None,
        "model_seconds": model["seconds"] if model and times else None,
        "ratio": row.get("measured_over_modelled"),
        "verdict": verdict,
    }


def _is_one(path: Path) -> bool:
    """Whether a file is empty, or begins as ours do."""
    from conv_compiler.doctor.examine import FORMAT

    with path.open(errors="replace") as file:
        head = file.read(200)
    return not head or json.dumps(FORMAT) in head


FOUND = Kind(name="a file of conv-compiler doctor", is_one=_is_one)
