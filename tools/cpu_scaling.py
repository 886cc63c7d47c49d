#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many times faster our CPU kernels are on several threads than on one, layer by layer.

    tools/cpu_scaling.py                          the facts' layers in f32, all cores
    tools/cpu_scaling.py r56 r28 --type bf16 --threads 4 --turns 60 --json found.json

Virtual cores are not always cores of their own: at times two of them share one, and nothing gets
faster by a second thread. So each turn measures multiply-adds in registers as well, which share
nothing, on one thread, then on all, before our calls and behind them. `cores` is the median of
what the machine gave by that measure. `scaling` is over all turns, and `of those` over the turns
in which it gave GIVEN of its cores or more.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import iree.runtime as iree
import numpy as np
from cpu_bench import TYPES, Call, Kernels, machine, our_call
from cpu_layers import SETS, find_layers
from cpu_peaks import ELEMENTS, loaded
from cpu_results import write_json

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.errors import UnsupportedProblem
from conv_compiler.runtime.kept_memory import host_device
from conv_compiler.targets.host import host_cores

TURNS, CALLS, CHAINS = 40, 3, 8
# A turn counts as undisturbed where multiply-adds in registers got so much of all cores.
GIVEN = 0.95
# One thread, the caller's own; IREE's workers.
DEVICES = ("local-sync", "local-task")


def seconds(call: Call, calls: int = CALLS) -> list[float]:
    """Times of some calls by the clock on the wall, after one that warms up."""
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn: how many cores the machine gave, and the time of one thread over that of all."""

    cores: float
    scaling: float


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """A layer's turns on some threads."""

    name: str
    strategy: str
    threads: int
    milliseconds: float
    turns: tuple[Turn, ...]

    @property
    def undisturbed(self) -> tuple[Turn, ...]:
        """The turns in which the machine gave its cores."""
        return tuple(turn for turn in self.turns if turn.cores >= GIVEN * self.threads)

    def summary(self) -> dict[str, float | int | None]:
        """Medians; None where no turn was undisturbed."""
        good = self.undisturbed
        return {
            "cores": statistics.median(turn.cores for turn in self.turns),
            "scaling": statistics.median(turn.scaling for turn in self.turns),
            "undisturbed_turns": len(good),
            "undisturbed_scaling": statistics.median(t.scaling for t in good) if good else None,
        }

    @property
    def text(self) -> str:
        """One line of the table."""
        found = self.summary()
        quiet = found["undisturbed_scaling"]
        return (
            f"{self.name:36}{self.milliseconds:9.2f}{found['cores']:7.2f}{found['scaling']:9.2f}"
            + (f"{quiet:11.2f}" if quiet else f"{'-':>11}")
            + f"{found['undisturbed_turns']:6} of {len(self.turns):<4}{self.strategy}"
        )


HEADER = f"{'layer':36}{'ms':>9}{'cores':>7}{'scaling':>9}{'of those':>11}{'turns':>9}"


def turn(registers: Sequence[Call], ours: Sequence[Call]) -> tuple[Turn, float]:
    """One turn of (one thread, all threads) of each, and the seconds of ours on one thread."""
    alone = min(seconds(registers[0]))
    before = min(seconds(registers[1]))
    one = statistics.median(seconds(ours[0]))
    many = statistics.median(seconds(ours[1]))
    behind = min(seconds(registers[1]))
    return Turn(cores=alone / max(before, behind), scaling=one / many), one


def measure(
    name: str, artifact: Artifact, registers: Sequence[Call], threads: int, turns: int
) -> Scaling:
    """Verify a layer's kernel, then time it beside `registers`, multiply-adds on DEVICES."""
    ours = [our_call(artifact, device)[1] for device in DEVICES]
    found = [turn(registers, ours) for _ in range(turns)]
    return Scaling(
        name=name,
        strategy=artifact.strategy.text,
        threads=threads,
        milliseconds=1e3 * statistics.median(one for _, one in found),
        turns=tuple(turn for turn, _ in found),
    )


def multiply_adds(module: bytes, device: str) -> Call:
    """A call of the kernel that stays in registers."""
    opened = host_device(device)
    ones = iree.asdevicearray(opened, np.ones(ELEMENTS, np.float32))
    kernel = loaded(module, opened)
    return lambda: kernel(ones)


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("layers", nargs="*", help="names or patterns, of either set (the facts)")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--threads", type=int, default=host_cores(), help="(the cores)")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"({TURNS})")
    parser.add_argument("--target", default="cpu", help="cpu, or one that this host runs (cpu)")
    parser.add_argument(
        "--kernels", type=Path, metavar="FOLDER", help="take what cpu_bench.py --compile made"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every turn there too")
    args = parser.parse_args()
    if not 2 <= args.threads <= host_cores():
        parser.error(f"--threads {args.threads}: 2 to {host_cores()}")
    if args.turns < 1:
        parser.error(f"--turns {args.turns}: 1 or more")
    if args.json and not args.json.parent.is_dir():
        parser.error(f"--json {args.json}: no such folder; make it first")
    try:
        args.chosen = find_layers(args.layers) if args.layers else SETS["facts"]
    except UnsupportedProblem as error:
        parser.error(str(error))
    return args


def main() -> int:
    """Measure and print one line a layer."""
    args = arguments()
    kernels = Kernels(target=args.target, folder=args.kernels)
    iree.flags.parse_flags(f"--task_topology_max_group_count={args.threads}")
    about = machine()
    print(f"{about['processor']}; {args.type}, {args.threads} threads over one\n{HEADER}")
    module = kernels.fma(CHAINS)
    registers = [multiply_adds(module, device) for device in DEVICES]
    results = []
    for layer in args.chosen:
        problem = replace(layer.problem, dtype=args.type, weight_dtype="")
        artifact = kernels.artifact(layer.name, problem)
        results.append(measure(layer.name, artifact, registers, args.threads, args.turns))
        print(results[-1].text, flush=True)
    if args.json:
        options = {"type": args.type, "threads": args.threads, "turns": args.turns}
        write_json(
            args.json,
            {
                "environment": about,
                "options": options,
                "layers": [asdict(one) | one.summary() for one in results],
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
