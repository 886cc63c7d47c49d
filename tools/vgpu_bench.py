#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast the virtual AMD GPU executes: wave-instructions a second, without and with checks.

    tools/vgpu_bench.py [--chip gfx942] [--runs 3] [--json]

The problem is ResNet-50's 3x3 layer of 28x28, C = K = 128, N = 32, f16, split-K and reduction
included. Times are medians of whole calls, by the wall clock.
"""

from __future__ import annotations

import argparse
import json
import sys

from conv_compiler import ConvProblem, compile, vgpu
from conv_compiler.commands.report import Column, left, right, show
from conv_compiler.runtime.kernel import load
from conv_compiler.verification.verify import inputs

PROBLEM = ConvProblem(n=32, k=128, c=128, image=(28, 28), filter=(3, 3), pad_low=(1, 1))
COLUMNS: tuple[Column, ...] = (
    left("chip", "chip"),
    right("wave instructions", "instructions"),
    right("matrix", "matrix"),
    right("seconds", "seconds", lambda s: f"{s:.2f}"),
    right("with checks", "checked_seconds", lambda s: f"{s:.2f}"),
    right("ratio", "ratio", lambda r: f"{r:.2f}"),
    right("M instructions/s", "millions_per_second", lambda r: f"{r:.1f}"),
)


def measure(chip: str, runs: int) -> dict[str, object]:
    """One row for a chip."""
    artifact = compile(PROBLEM, chip, tuned=False)
    operands = inputs(PROBLEM)
    plain, checked = load(artifact, "vgpu"), load(artifact, "vgpu-checked")
    with vgpu.counting():
        plain(*operands)
    counts = vgpu.counters()
    instructions = sum(row.total_instructions for row in counts)
    seconds = plain.median_seconds(*operands, budget=0, least=runs)
    checked_seconds = checked.median_seconds(*operands, budget=0, least=runs)
    return {
        "chip": chip,
        "strategy": artifact.strategy.text,
        "instructions": instructions,
        "matrix": sum(row.instructions["matrix"] for row in counts),
        "seconds": seconds,
        "checked_seconds": checked_seconds,
        "ratio": checked_seconds / seconds,
        "millions_per_second": instructions / seconds / 1e6,
    }


def main() -> int:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", action="append", choices=vgpu.CHIPS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(chip, arguments.runs) for chip in arguments.chip or ["gfx942"]]
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows, COLUMNS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
