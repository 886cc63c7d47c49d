#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our CPU kernels beside PyTorch's (oneDNN), layer by layer: needs the extra [torch].

    tools/cpu_bench.py                    one core, by processor time: holds on a busy machine
    tools/cpu_bench.py --clock wall       all cores, by the clock on the wall: wants an idle one
    tools/cpu_bench.py --clock wall --threads 1
    tools/cpu_bench.py --set models --type bf16 --json found.json
    tools/cpu_bench.py --direction all --clock wall --call numpy    as a user calls them
    tools/cpu_bench.py ret 'resnet50.*'   layers of any set (tools/cpu_layers.py)
    tools/cpu_bench.py --compile FOLDER --target cpu-sapphirerapids@1
    tools/cpu_bench.py --kernels FOLDER   on another machine, which has no compiler

Times are taken by `conv_compiler/benchmark`, as `conv-compiler bench` takes them. What it has not
is here: the peaks of the machine, layers of several models, and kernels compiled elsewhere. Both
sides keep their tensors in the layer's layout and are called in turns; medians. A
spread is the interquartile range over the median. Every kernel of ours is verified first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import iree.runtime as iree
from cpu_layers import SETS, Layer, find_layers
from cpu_peaks import CHAINS, fma_kernel, loaded, measure_peaks
from cpu_results import HEADER, Result, summaries, write_json

from conv_compiler import compile
from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.benchmark.machine import host as machine
from conv_compiler.benchmark.machine import pytorch
from conv_compiler.benchmark.sides import CallSide, Case
from conv_compiler.benchmark.torch_peer import torch_side
from conv_compiler.benchmark.turns import Call, Clock, Plan, in_turns
from conv_compiler.errors import ConvError, UnsupportedProblem
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import DIRECTIONS
from conv_compiler.runtime.batch_scheduling import batch_wait, may_wait_as_batch
from conv_compiler.runtime.kept_memory import host_device
from conv_compiler.runtime.kernel import load
from conv_compiler.targets import find_target
from conv_compiler.targets.host import host_cores
from conv_compiler.verification.inputs import inputs
from conv_compiler.verification.verify import verify_artifact

PLAN = Plan(rounds=6, calls=6, most_seconds=60)
TYPES = ("f32", "bf16", "f16")


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """Kernels for a target, or those that were compiled into a folder."""

    target: str = "cpu"
    folder: Path | None = None

    def artifact(self, name: str, problem: ConvProblem) -> Artifact:
        """A layer's kernel."""
        if self.folder:
            return Artifact.load(self.folder / f"{name}-{problem.dtype}.vmfb")
        return compile(problem, self.target, tuned=False)

    def fma(self, chains: int) -> bytes:
        """The kernel that finds the peak (tools/cpu_peaks.py)."""
        if self.folder:
            return (self.folder / f"fma{chains}.vmfb").read_bytes()
        flags = (f for f in find_target(self.target).flags if f.startswith("--iree-llvmcpu"))
        return fma_kernel(chains, flags=tuple(flags))

    def save(self, folder: Path, layers: Sequence[Layer], dtype: str) -> None:
        """Compile all that a benchmark of these layers calls into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for chains in CHAINS:
            (folder / f"fma{chains}.vmfb").write_bytes(self.fma(chains))
        for layer in layers:
            problem = replace(layer.problem, dtype=dtype, weight_dtype="")
            artifact = self.artifact(layer.name, problem)
            artifact.save(folder / f"{layer.name}-{dtype}.vmfb")
            print(f"{layer.name:36}{artifact.strategy.text}", flush=True)


def our_call(artifact: Artifact, device: str, way: str = "place") -> tuple[str, Call]:
    """Strategy and a call of our kernel, after it was verified."""
    problem = verify_artifact(artifact, budget=0).require().problem
    if way == "numpy":
        whole, arrays = load(artifact), inputs(problem, "random")
        return artifact.strategy.text, lambda: whole(*arrays)
    opened = host_device(device)
    kernel = loaded(artifact.vmfb.read_bytes(), opened)
    operands = [iree.asdevicearray(opened, array) for array in inputs(problem, "random")]
    waiting = batch_wait if device == "local-task" and may_wait_as_batch() else nullcontext

    def call() -> Any:
        with waiting():  # as `conv_compiler.runtime.kernel` calls it
            return kernel(*operands)

    return artifact.strategy.text, call


def pytorch_side(problem: ConvProblem) -> CallSide:
    """PyTorch's own on the same numbers, as `conv-compiler bench` calls it."""
    operands = inputs(problem, "random")
    case = Case(problem=problem, operands=operands, target=find_target("cpu"), device="cpu")
    return torch_side(case)


def refusal(call: Call, clock: Clock) -> str:
    """Call once: why not again, or nothing. A kernel that PyTorch lacks is a RuntimeError."""
    start = clock()
    try:
        call()
    except RuntimeError as error:
        return f"no kernel ({str(error).splitlines()[0]})"
    seconds = clock() - start
    too_long = seconds * PLAN.calls_in_all > PLAN.most_seconds
    return f"over a minute (a call takes {seconds:.1f} s)" if too_long else ""


def measure(layer: Layer, kernels: Kernels, device: str, way: str, clock: Clock) -> Result:
    """Time one layer on both sides, or on the one that can."""
    problem = layer.problem
    theirs = pytorch_side(problem)
    result = Result(name=layer.name, problem=problem, backend=theirs.detail)
    try:
        strategy, mine = our_call(kernels.artifact(layer.name, problem), device, way)
    except ConvError as error:
        return replace(result, notes=(f"ours: {str(error).splitlines()[0]}",))
    sides = {"pytorch": theirs, "ours": replace(theirs, detail=strategy, call=mine)}
    why = {name: refusal(side.call, clock) for name, side in sides.items()}
    timed = {name: side for name, side in sides.items() if not why[name]}
    timings = in_turns(timed, PLAN, clock)
    return replace(
        result,
        strategy=strategy,
        notes=tuple(f"{side}: {text}" for side, text in why.items() if text),
        pytorch=timings.get("pytorch"),
        ours=timings.get("ours"),
    )


def asked(layers: Sequence[Layer], dtype: str, direction: str) -> list[Layer]:
    """The layers in a type and a direction, or in all three, which their names then tell."""
    directions = list(DIRECTIONS) if direction == "all" else [direction]
    return [
        replace(
            layer,
            name=layer.name if one == "bwd_weight" else f"{layer.name}:{one}",
            problem=replace(layer.problem, dtype=dtype, weight_dtype="", direction=one),
        )
        for one in directions
        for layer in layers
    ]


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("layers", nargs="*", help="names or patterns, of any set (a whole set)")
    parser.add_argument("--set", choices=SETS, default="facts", help="facts, ways or models")
    parser.add_argument("--type", choices=TYPES, default="f32")
    parser.add_argument("--direction", choices=(*DIRECTIONS, "all"), default="bwd_weight")
    parser.add_argument("--call", choices=("place", "numpy"), default="place", help="of ours")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--threads", type=int, help="of both sides, by --clock wall (the cores)")
    parser.add_argument("--target", default="cpu", help="cpu, or one that this host runs (cpu)")
    parser.add_argument("--compile", type=Path, metavar="FOLDER", help="compile into it, and stop")
    parser.add_argument(
        "--kernels", type=Path, metavar="FOLDER", help="take what is compiled there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all of it there too")
    args = parser.parse_args()
    if args.threads is not None and (args.clock == "cpu" or not 1 <= args.threads <= host_cores()):
        parser.error(f"--threads {args.threads}: 1 to {host_cores()}, with --clock wall")
    if args.call == "numpy" and args.clock == "cpu":
        parser.error("--call numpy: has workers; use it with --clock wall")
    if args.json and not args.json.parent.is_dir():
        parser.error(f"--json {args.json}: no such folder; make it first")
    try:
        args.chosen = find_layers(args.layers) if args.layers else SETS[args.set]
    except UnsupportedProblem as error:
        parser.error(str(error))
    args.asked = asked(args.chosen, args.type, args.direction)
    return args


def load_text() -> str:
    """What else the machine does."""
    return "load " + " ".join(f"{one:.1f}" for one in os.getloadavg())


def main() -> int:
    """Measure and print one line a layer, then what they come to; 1 where ours failed in one."""
    args = arguments()
    kernels = Kernels(target=args.target, folder=args.kernels)
    if args.compile:
        kernels.save(args.compile, args.asked, args.type)
        return 0
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch: not installed; pip install 'conv-compiler[torch]'")
    one_core = args.clock == "cpu"
    threads = args.threads or torch.get_num_threads()
    iree.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    torch.set_num_threads(1 if one_core else threads)
    clock = time.process_time if one_core else time.perf_counter
    device = "local-sync" if one_core else "local-task"
    about, peaks = machine() | pytorch(), measure_peaks(threads, kernels.fma)
    sides = "one core by processor time" if one_core else f"--threads {threads} by the wall clock"
    print(f"{about['processor']}; PyTorch {about['torch']}, oneDNN {about['onednn']}")
    print(f"{peaks.text}; {load_text()}")
    print(f"{args.type}, {sides}\n{HEADER}", flush=True)
    results = []
    for layer in args.asked:
        results.append(measure(layer, kernels, device, args.call, clock))
        print(results[-1].text, flush=True)
    print(load_text())
    means = summaries(results)
    for row in means:
        print(row.text)
    if missing := [one.name for one in results if not one.ratio]:
        print(f"no ratio: {', '.join(missing)}")
    if args.json:
        options = {
            "type": args.type,
            "direction": args.direction,
            "call": args.call,
            "clock": args.clock,
            "threads": 1 if one_core else threads,
        }
        write_json(
            args.json,
            {
                "environment": about,
                "options": options,
                "peaks": asdict(peaks),
                "layers": [one.to_json() for one in results],
                "summary": [asdict(row) for row in means],
            },
        )
    return int(any(not one.ours for one in results))


if __name__ == "__main__":
    sys.exit(main())
