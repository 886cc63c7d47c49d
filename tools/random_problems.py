#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random problems on the virtual AMD GPU: kernels against the definition, on whole numbers.

    tools/random_problems.py [--chips gfx942,...] [--directions fwd,...] [--count 300] [--first 0]
                             [--ops] [--chosen] [--checks] [--jobs 2] [--json] [--output FILE]

The problems are those of the numeric tests (`tests/drawn.py`): any types, layouts, groups, strides,
dilations, pads, odd sizes and split-K factors. Each runs by the strategy that is chosen and, unless
`--chosen` is given, by another one that has a tile for it. Whole numbers must come out exactly.
`--ops` leaves the ops on operands and result, whose roundings are then allowed. `--first` is the
number of the first problem: another one draws others. With `--checks` the virtual GPU runs with all
checks. Exit 1 where a kernel is wrong or fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

# The generator of random problems is that of the tests.
sys.path.append(str(Path(__file__).parent.parent))

from conv_compiler.commands.report import left, right, show
from conv_compiler.errors import ConvError, UnsupportedStrategy
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.strategies.registry import STRATEGIES
from conv_compiler.strategies.select import choose
from conv_compiler.targets import find_target
from conv_compiler.verification.verify import verify
from tests.drawn import Draw, drawn, seed_of

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
KINDS = ("exact", "rounded", "wrong", "failed")
COLUMNS = (
    left("chip", "chip"),
    left("direction", "direction"),
    right("problems", "problems"),
    right("kernels", "kernels"),
    right("exact", "exact"),
    right("in an op's roundings", "rounded"),
    right("wrong", "wrong"),
    right("failed", "failed"),
)
PROBLEMS = (
    left("chip", "chip"),
    left("direction", "direction"),
    right("number", "number"),
    left("strategy", "strategy"),
    left("what", "kind"),
    left("", "text"),
)


@dataclass(frozen=True)
class Ways:
    """How problems are run: with their ops, by the chosen strategy alone, with the checks."""

    ops: bool = False
    chosen: bool = False
    checks: bool = False


@dataclass(frozen=True)
class Task:
    """Problem `number` of a direction on a chip."""

    chip: str
    direction: str
    number: int
    ways: Ways = Ways()

    def draw(self) -> Draw:
        """The problem and its split-K."""
        found = drawn(self.chip, self.number, self.direction)
        if self.ways.ops:
            return found
        plain = {"elementwise": "", "input_op": "", "weight_op": "", "output_op": ""}
        return found._replace(problem=replace(found.problem, **plain))


@dataclass(frozen=True)
class Outcome:
    """What became of a kernel: `kind` is one of KINDS, and `text` says more."""

    chip: str
    direction: str
    number: int
    strategy: str
    kind: str
    text: str
    seconds: float


def names(draw: Draw, chip: str, number: int) -> list[str]:
    """The strategies that compute a problem here: the chosen one, and one of the others in turn."""
    target, others = find_target(chip), []
    chosen = choose(draw.problem, target, split_k=draw.split_k)[0].name
    for row in STRATEGIES.values():
        if target.backend not in row.backends or row.name == chosen:
            continue
        try:
            choose(draw.problem, target, row.name, draw.split_k)
        except UnsupportedStrategy:
            continue
        others.append(row.name)
    return [chosen, *others[number % max(1, len(others)) :][:1]]


def run(task: Task) -> list[Outcome]:
    """A problem by each of its strategies; an error is an outcome."""
    draw = task.draw()
    try:
        found = names(draw, task.chip, task.number)[: 1 if task.ways.chosen else 2]
    except ConvError as error:
        return [_outcome(task, "-", "failed", f"{draw.problem.name}: {error}", 0.0)]
    return [_tried(task, draw, name, named=name != found[0]) for name in found]


def _tried(task: Task, draw: Draw, strategy: str, *, named: bool) -> Outcome:
    """A problem by a strategy, chosen or by its name."""
    began = time.monotonic()
    try:
        report = verify(
            draw.problem,
            task.chip,
            strategy if named else None,
            draw.split_k,
            device="vgpu-checked" if task.ways.checks else "vgpu",
            seed=seed_of(task.chip, task.number),
            runs=1,
            budget=0.0,
            tuned=False,
        )
        right_kind = "exact" if report.tolerance.exact else "rounded"
        kind, text = right_kind if report.passed else "wrong", report.text
    except (ConvError, RuntimeError) as error:  # IREE's are RuntimeErrors, with what checks found
        kind = "failed"
        text = f"{draw.problem.name} split_k={draw.split_k}: {' '.join(str(error).split())[:300]}"
    return _outcome(task, strategy, kind, text, time.monotonic() - began)


def _outcome(task: Task, strategy: str, kind: str, text: str, seconds: float) -> Outcome:
    where = (task.chip, task.direction, task.number)
    return Outcome(*where, strategy, kind, text, round(seconds, 2))


def tasks(
    chips: Sequence[str], directions: Sequence[str], numbers: range, ways: Ways
) -> list[Task]:
    """Every problem; chips and directions in turn, so that a run cut short has some of each."""
    return [
        Task(chip, direction, number, ways)
        for number in numbers
        for chip in chips
        for direction in directions
    ]


def outcomes(every: Sequence[Task], jobs: int) -> Iterator[list[Outcome]]:
    """Those of each task as it ends, `jobs` processes at work."""
    if jobs == 1:
        yield from map(run, every)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for one in as_completed([pool.submit(run, task) for task in every]):
            yield one.result()


def summary(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each chip and direction."""
    rows = []
    for chip, direction in dict.fromkeys((one.chip, one.direction) for one in found):
        here = [one for one in found if (one.chip, one.direction) == (chip, direction)]
        kinds = Counter(one.kind for one in here)
        rows.append(
            {
                "chip": chip,
                "direction": direction,
                "problems": len({one.number for one in here}),
                "kernels": len(here),
                **{kind: kinds[kind] for kind in KINDS},
            }
        )
    return sorted(rows, key=lambda row: (row["chip"], row["direction"]))


def main() -> int:
    """Parse the command line, run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--directions", default=",".join(DIRECTIONS))
    parser.add_argument("--count", type=int, default=300, help="problems a chip and direction")
    parser.add_argument("--first", type=int, default=0, help="the number of the first problem")
    parser.add_argument("--ops", action="store_true", help="with ops on operands and result")
    parser.add_argument("--chosen", action="store_true", help="by the chosen strategy alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--checks", action="store_true", help="run with the virtual GPU's checks")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", type=Path, help="write every kernel here, a line of JSON each")
    arguments = parser.parse_args()
    began, found = time.monotonic(), []
    numbers = range(arguments.first, arguments.first + arguments.count)
    chips, directions = arguments.chips.split(","), arguments.directions.split(",")
    ways = Ways(arguments.ops, arguments.chosen, arguments.checks)
    for several in outcomes(tasks(chips, directions, numbers, ways), arguments.jobs):
        found += several
        if arguments.output:
            with arguments.output.open("a") as file:
                file.writelines(json.dumps(asdict(one)) + "\n" for one in several)
    bad = [asdict(one) for one in found if one.kind in ("wrong", "failed")]
    rows = summary(found)
    if arguments.json:
        print(json.dumps({"rows": rows, "wrong": bad}, indent=1))
    else:
        show(rows, COLUMNS)
        if bad:
            print()
            show(bad, PROBLEMS)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
