#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast the virtual AMD GPU executes: wave-instructions a second, without and with checks.

    tools/vgpu_bench.py [--chip gfx942] [--rounds 8] [--json]

The problem is ResNet-50's 3x3 layer of 28x28, C = K = 128, N = 32, f16, split-K and reduction
included. Times are medians of whole calls by the wall clock. Calls on one core and on all cores,
without and with checks, take turns, so that a busy moment meets all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conv_compiler import vgpu
from conv_compiler.benchmark.turns import Clock, Plan, in_turns, times_of
from conv_compiler.commands.report import Column, left, right, show
from conv_compiler.compiler.compile import compile
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.verify import inputs

PROBLEM = ConvProblem(n=32, k=128, c=128, image=(28, 28), filter=(3, 3), pad_low=(1, 1))
CALLS = 2  # that count, of a side in a round; one before them warms up
COLUMNS: tuple[Column, ...] = (
    left("chip", "chip"),
    right("wave instructions", "instructions"),
    right("one core, s", "seconds", lambda s: f"{s:.3f}"),
    right("M instructions/s", "millions_per_second", lambda r: f"{r:.1f}"),
    right("with checks, s", "checked_seconds", lambda s: f"{s:.3f}"),
    right("ratio", "checks_ratio", lambda r: f"{r:.2f}"),
    right("cores", "cores"),
    right("all cores, s", "seconds_on_all", lambda s: f"{s:.3f}"),
    right("faster", "cores_ratio", lambda r: f"{r:.2f}"),
)


@dataclass(frozen=True)
class OnCores:
    """Calls while all threads of this process keep to some cores."""

    call: Callable[[], Any]
    cores: Set[int]
    most_rounds: int | None = None

    def times(self, plan: Plan, clock: Clock) -> Sequence[float]:
        """The seconds of a round."""
        keep_to(self.cores)
        return times_of(self.call, plan, clock)


def keep_to(cores: Set[int]) -> None:
    """Bind each thread of this process to some cores.

    The virtual GPU's threads that wait for work since an earlier call are among them.
    """
    for task in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended since
            os.sched_setaffinity(int(task.name), cores)


def measure(chip: str, rounds: int) -> dict[str, object]:
    """One row for a chip."""
    artifact = compile(PROBLEM, chip, tuned=False)
    operands = inputs(PROBLEM)
    plain, checked = load(artifact, "vgpu"), load(artifact, "vgpu-checked")
    with vgpu.counting():
        plain(*operands)
    counts = vgpu.counters()
    instructions = sum(row.total_instructions for row in counts)
    cores = os.sched_getaffinity(0)
    one = {min(cores)}
    sides = {
        "one": OnCores(lambda: plain(*operands), one),
        "checked": OnCores(lambda: checked(*operands), one),
        "all": OnCores(lambda: plain(*operands), cores),
    }
    found = in_turns(sides, Plan(rounds=rounds, calls=CALLS, warm_up=1), time.perf_counter)
    keep_to(cores)
    seconds = found["one"].seconds
    return {
        "chip": chip,
        "strategy": artifact.strategy.text,
        "instructions": instructions,
        "matrix": sum(row.instructions["matrix"] for row in counts),
        "seconds": seconds,
        "spread": found["one"].spread,
        "millions_per_second": instructions / seconds / 1e6,
        "checked_seconds": found["checked"].seconds,
        "checks_ratio": found["checked"].seconds / seconds,
        "cores": len(cores),
        "seconds_on_all": found["all"].seconds,
        "cores_ratio": seconds / found["all"].seconds,
    }


def main() -> int:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", action="append", choices=vgpu.CHIPS)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: no call would be timed; use 1 or more")
    rows = [measure(chip, arguments.rounds) for chip in arguments.chip or ["gfx942"]]
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows, COLUMNS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
