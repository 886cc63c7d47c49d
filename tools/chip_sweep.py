#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile the known problem lists for every AMD chip and tell what came out.

    tools/chip_sweep.py [--chips gfx942,...] [--lists ck,retinanet] [--every N] [--markdown FILE]

For each chip: how many compiled, how many hold a matrix instruction, which do not and why, the
slowest compile. A problem that does not compile, spills or uses scratch makes the exit code 1.
`--every 7` takes each seventh problem. Compiles go to the user's cache unless --no-cache.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from conv_compiler import ConvError, ConvProblem, compile
from conv_compiler.storage.cache import Cache
from conv_compiler.targets import TARGETS, find_target

DATA = Path(__file__).parent.parent / "tests" / "data"


def ck_cases() -> list[tuple[ConvProblem, int]]:
    """Composable Kernel's typed tests with every problem of their dimension and split factor."""
    table = json.loads((DATA / "ck_bwd_weight.json").read_text())
    cases = []
    for typed in table["types"]:
        types = {name: value for name, value in typed.items() if name != "ndim"}
        for sizes in table["problems"][str(typed["ndim"])]:
            problem = ConvProblem.from_json({**sizes, **types})
            cases += [(problem, split_k) for split_k in table["split_k"]]
    return cases


def retinanet_cases() -> list[tuple[ConvProblem, int]]:
    """The trainable layers of RetinaNet at N=1, f16 and bf16 in turn, split chosen by us."""
    table = json.loads((DATA / "retinanet_bwd_weight.json").read_text())
    cases = []
    for i, layer in enumerate(table["layers"]):
        sizes = {k: v for k, v in layer.items() if k not in ("name", "layer")}
        problem = ConvProblem.from_json({**sizes, "dtype": ("f16", "bf16")[i % 2]})
        cases.append((problem, -1))
    return cases


LISTS = {"ck": ck_cases, "retinanet": retinanet_cases}


@dataclass
class Tally:
    """What one chip's compiles came to."""

    compiled: int = 0
    with_mma: int = 0
    slowest_seconds: float = 0.0
    second_choice: int = 0
    vector: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


def sweep(chip: str, cases: list[tuple[ConvProblem, int]], cache: Cache) -> Tally:
    """Compile all cases for one chip."""
    tally, target = Tally(), find_target(chip)
    for problem, split_k in cases:
        try:
            artifact = compile(problem, chip, split_k=split_k, cache=cache, tuned=False)
        except ConvError as error:
            tally.failed.append(f"{problem.name} split_k={split_k}: {error}")
            print(f"{chip} FAILED {tally.failed[-1]}", flush=True)
            continue
        tally.compiled += 1
        tally.second_choice += bool(artifact.rejected)
        tally.slowest_seconds = max(tally.slowest_seconds, artifact.seconds)
        if artifact.main_kernel.mma:
            tally.with_mma += 1
        elif target.mma_for(problem.dtype):
            tally.vector[f"g{problem.g} k{problem.k} c{problem.c} {problem.dtype}"] += 1
        else:
            tally.vector[f"no {problem.dtype} matrix instruction"] += 1
    return tally


def main() -> int:
    """Parse the command line, sweep, print a table; 0 when every problem compiled."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    amd = [name for name, row in TARGETS.items() if row.backend == "rocm"]
    parser.add_argument("--chips", default=",".join(amd))
    parser.add_argument("--lists", default=",".join(LISTS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    cases = [case for name in arguments.lists.split(",") for case in LISTS[name]()]
    cases = cases[:: arguments.every]
    lines = [
        "| chip | compiled | matrix instruction | second choice | slowest compile | vector code |",
        "|---|---|---|---|---|---|",
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder)) if arguments.no_cache else Cache.default()
        for chip in arguments.chips.split(","):
            tally = sweep(chip, cases, cache)
            failed += len(tally.failed)
            vector = "; ".join(f"{what}: {count}" for what, count in tally.vector.items())
            lines.append(
                f"| {chip} | {tally.compiled} of {len(cases)} | {tally.with_mma} | "
                f"{tally.second_choice} | {tally.slowest_seconds:.1f} s | {vector or '-'} |"
            )
            print(lines[-1], flush=True)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
