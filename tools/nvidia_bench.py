#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel times of our CUDA code, of IREE's own and of cuDNN's on an NVIDIA GPU.

    tools/nvidia_bench.py compile FOLDER   on any machine with iree-base-compiler
    tools/nvidia_bench.py run FOLDER       on a machine with a GPU, iree-base-runtime and PyTorch

`--layers resnet50` takes the layers of a list (with `--batch`, `--types f16,bf16` and
`--directions fwd,bwd_data`) or one of the SETS, in place of a few problems of every kind. With
`--types i8,f8E4M3FN` cuDNN's times are those of f16.
`--compute tf32` multiplies f32 so, on both sides. `--small-groups` takes groups of few channels in
all directions. `--chip sm_90a` compiles for a Hopper card, and `--ours` leaves IREE's own out.

A module is compiled twice, once with every dispatch repeated. The difference of the two calls'
medians is the time of the kernels, all dispatches of a call together, with what IREE's runtime does
between them. Kernels with copies to LDS are launched from their PTX in a CUDA graph instead.
cuDNN's time is that of a CUDA graph of as many calls. Kernels of small groups are too short for
that: PyTorch's profiler gives the time in kernels of both sides. `run` checks our results first
(whole numbers, exactly), prints a table and writes FOLDER/bench.json; it exits with 1 when a kernel
of ours is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graph_times import calls, graph_seconds, launch_of
from nvidia_problems import PROBLEMS, SMALL_GROUPS, layers

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.commands.report import left, right, show
from conv_compiler.problem.conv_problem import ConvProblem

REPEATS = 33
# Taps along an axis of a filter that cuDNN computes by sums of products.
FEW_TAPS = 3
SECONDS = 0.3  # spent on each median
# The deviation of random integers of 8 bits, and a number that no sum of a check is.
WIDE_INTEGERS, NO_SUM = 30, -(2**30)
COLUMNS = (
    left("problem", "label"),
    left("ours", "strategy"),
    left("integers", "verdict"),
    right("ours us", "ours", lambda us: f"{us:.1f}"),
    right("IREE us", "iree", lambda us: f"{us:.1f}" if us else "-"),
    right("cuDNN us", "cudnn", lambda us: f"{us:.1f}"),
    right("IREE / ours", "to_iree", lambda ratio: f"{ratio:.2f}" if ratio else "-"),
    right("cuDNN / ours", "to_cudnn", lambda ratio: f"{ratio:.2f}"),
    right("TFLOP/s", "tflops", lambda rate: f"{rate:.0f}"),
    left("note", "note"),
)


INDEX, PTX, LAUNCH, STRATEGY = "problems.json", "kernels.ptx", "launch.json", "strategy.txt"


def compile_all(
    folder: Path, chip: str, problems: Mapping[str, ConvProblem], *, with_iree: bool
) -> None:
    """Both sides of every problem, once as they are and once with every dispatch repeated."""
    from iree_boo import flags, payload

    from conv_compiler.compiler.compile import compile
    from conv_compiler.compiler.stages import compiler_flags, run_compiler, stage_texts
    from conv_compiler.errors import CompileFailed
    from conv_compiler.strategies.warp_group_tiling import (
        GradientTiling,
        WarpGroupTiling,
        WindowTiling,
    )
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    target = find_target(chip)
    repeated = f"--iree-hal-benchmark-dispatch-repeat-count={REPEATS}"
    folder.mkdir(parents=True, exist_ok=True)
    named = {label: problem.to_json() for label, problem in problems.items()}
    index = {"profiled": problems is SMALL_GROUPS, "problems": named}
    (folder / INDEX).write_text(json.dumps(index))
    for number, (label, problem) in enumerate(problems.items()):
        ours, iree = (folder / f"{number:02}.{side}" for side in ("ours", "iree"))
        for work in (ours, iree):
            work.mkdir(parents=True, exist_ok=True)
        artifact = compile(problem, chip, tuned=False)
        resolved = resolve(problem, target, artifact.strategy.mma)
        (ours / STRATEGY).write_text(artifact.strategy.text)
        if isinstance(artifact.strategy.tiling, WarpGroupTiling | WindowTiling | GradientTiling):
            (ours / PTX).write_text(stage_texts(resolved, artifact.strategy, ours, "isa")["isa"])
            launch = launch_of(resolved.wgrad, artifact.strategy, target)
            (ours / LAUNCH).write_text(json.dumps(launch))
        else:
            artifact.save(ours / "once.vmfb")
            stage_texts(resolved, artifact.strategy, ours, "scheduled")
            run_compiler([*compiler_flags(target), repeated], ours)
            (ours / "module.vmfb").rename(ours / "repeated.vmfb")
        note = "" if with_iree else "IREE left out"
        try:
            if with_iree:
                (iree / "module.mlir").write_text(payload(problem, target))
            for name, extra in (("once", []), ("repeated", [repeated])) if with_iree else ():
                run_compiler([*flags(target), *extra], iree)
                (iree / "module.vmfb").rename(iree / f"{name}.vmfb")
        except CompileFailed as failed:
            note = str(failed)
        (iree / "note.txt").write_text(note)
        print(f"{number:02} {label}: {artifact.strategy.text} {note}", flush=True)


def _graph(folder: Path, problem: ConvProblem, of: Callable[..., Any]) -> tuple[Any, list[Any]]:
    """Tensors of the card by name, made by a function of a shape, and the launches on them."""
    import torch

    types = {
        "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i8": torch.int8,
        "i32": torch.int32, "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
    }  # fmt: skip
    shapes = {
        "image": problem.input_shape,
        "gradient": problem.output_shape,
        "weight": problem.weight_shape,
    }
    *_, result = _NAMES[problem.direction]
    image, gradient, weight = (
        of(shape).to(types[problem.result_type.name if name == result else problem.dtype])
        for name, shape in shapes.items()
    )
    tensors = {
        "bwd_weight": {"gradient": gradient, "image": image, "result": weight},
        "bwd_data": {"source": gradient, "weight": weight, "result": image},
        "fwd": {"source": image, "weight": weight, "result": gradient},
    }[problem.direction]
    return tensors, calls(folder / PTX, json.loads((folder / LAUNCH).read_text()), tensors)


def ptx_seconds(folder: Path, problem: ConvProblem) -> float:
    """Seconds of the kernels of one call in a CUDA graph, on random numbers."""
    import torch

    size = WIDE_INTEGERS if problem.data_type.is_integer else 1
    _, several = _graph(folder, problem, lambda shape: size * torch.randn(shape, device="cuda"))
    return graph_seconds(lambda: [call() for call in several], REPEATS)


def graph_is_exact(folder: Path, problem: ConvProblem) -> bool:
    """Whether the kernels are exact on whole numbers: cuDNN's sums in f32 say what is right."""
    import torch

    tensors, several = _graph(
        folder, problem, lambda shape: torch.randint(-2, 3, shape, device="cuda")
    )
    result = tensors["result"]
    result.fill_(math.nan if result.is_floating_point() else NO_SUM)
    for call in several:
        call()
    found = result.clone()
    last = problem.ndim + 1
    shapes = {
        "image": (problem.n, *problem.image, problem.g * problem.c),
        "gradient": (problem.n, *problem.out_image, problem.g * problem.k),
        "weight": (problem.g * problem.k, *problem.filter, problem.c),
    }
    result.zero_()
    held = dict(zip(_NAMES[problem.direction], tensors.values(), strict=True))
    # By transforms, which it prefers for large filters, cuDNN's sums are off by more than one.
    exact = torch.float32 if max(problem.filter) <= FEW_TAPS else torch.float64
    image, gradient, weight = (
        held[name].reshape(shape).to(exact).movedim(last, 1).contiguous()
        for name, shape in shapes.items()
    )
    torch.backends.cudnn.allow_tf32 = False
    wanted = _convolution(problem, image, gradient, weight)()
    if problem.direction != "fwd":
        wanted = next(one for one in wanted if one is not None)
    # What cuDNN computes by transforms is a little off.
    wanted = wanted.round().movedim(1, last).reshape(found.shape)
    return bool(torch.equal(found, wanted.to(found.dtype)))


# What a direction's operands and result are, in the order in which `_graph` has them.
_NAMES = {
    "bwd_weight": ("gradient", "image", "weight"),
    "bwd_data": ("gradient", "weight", "image"),
    "fwd": ("image", "weight", "gradient"),
}


def _kernel_seconds(folder: Path, problem: ConvProblem) -> float:
    """Seconds of all dispatches of one call."""
    from conv_compiler.runtime.kernel import load
    from conv_compiler.verification.verify import inputs

    operands = inputs(problem, "random", 0)
    once, repeated = (
        load(folder / f"{name}.vmfb", "cuda").median_seconds(*operands, budget=SECONDS)
        for name in ("once", "repeated")
    )
    return (repeated - once) / (REPEATS - 1)


def profiled_seconds(call: Callable[[], Any], calls: int = 20, rounds: int = 3) -> float:
    """Seconds in kernels of one call: the median of some rounds of calls."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    found = []
    for _ in range(rounds + 1):  # the first one warms up
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for _ in range(calls):
                call()
            torch.cuda.synchronize()
        rows = profiled.key_averages()
        found.append(sum(row.self_device_time_total for row in rows) / calls * 1e-6)
    return sorted(found[1:])[rounds // 2]


def _ours(folder: Path, problem: ConvProblem) -> Callable[[], Any]:
    """A call of our kernels on arrays of the card."""
    from conv_compiler.runtime.kernel import load
    from conv_compiler.verification.verify import inputs

    kernel = load(folder / "once.vmfb", "cuda")
    operands = [kernel.put(one) for one in inputs(problem, "random", 0)]
    return lambda: kernel(*operands)


def _cudnn(problem: ConvProblem) -> Callable[[], Any]:
    """A call of PyTorch's convolution, or its gradient, on channels-last tensors."""
    import torch

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[problem.dtype]
    g = problem.g
    last = torch.channels_last if problem.ndim == 2 else torch.channels_last_3d
    image, gradient, weight = (
        torch.rand(shape, dtype=dtype, device="cuda").to(memory_format=last)
        for shape in (
            (problem.n, g * problem.c, *problem.image),
            (problem.n, g * problem.k, *problem.out_image),
            (g * problem.k, problem.c, *problem.filter),
        )
    )
    return _convolution(problem, image, gradient, weight)


def _convolution(problem: ConvProblem, image: Any, gradient: Any, weight: Any) -> Callable[[], Any]:
    """A call of PyTorch's convolution, or its gradient."""
    import torch

    numbers = (list(problem.stride), list(problem.pad_low), list(problem.dilation))
    if problem.direction == "fwd":
        convolve = getattr(torch.nn.functional, f"conv{problem.ndim}d")
        return lambda: convolve(image, weight, None, *numbers, problem.g)
    mask = [problem.direction == "bwd_data", problem.direction == "bwd_weight", False]
    zeros = [0] * problem.ndim
    return lambda: torch.ops.aten.convolution_backward(
        gradient, image, weight, None, *numbers, False, zeros, problem.g, mask
    )


def cudnn_seconds(problem: ConvProblem, *, profiled: bool) -> float:
    """Seconds of one call, within a graph of many unless the profiler takes them; cuDNN searches
    its fastest kernel first."""
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = bool(problem.compute)
    call = _cudnn(as_cudnn_takes(problem))
    return profiled_seconds(call) if profiled else graph_seconds(call, REPEATS)


def as_cudnn_takes(problem: ConvProblem) -> ConvProblem:
    """The problem in f16 where its data are of 8 bits, of which PyTorch's cuDNN has none."""
    if problem.data_type.bits > 8:
        return problem
    return replace(problem, dtype="f16", weight_dtype="")


def _our_seconds(folder: Path, problem: ConvProblem, *, profiled: bool) -> float:
    if (folder / PTX).exists():
        return ptx_seconds(folder, problem)
    return (
        profiled_seconds(_ours(folder, problem)) if profiled else _kernel_seconds(folder, problem)
    )


def _card() -> str:
    """The card, its clocks and its power, as the driver tells them now."""
    asked = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw,power.limit"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def run_all(folder: Path) -> bool:
    """Measure every problem in the folder; True when all of ours are right."""
    import iree.runtime

    from conv_compiler.verification.verify import verify_artifact

    # One after another: in a graph the repetitions of a dispatch would overlap.
    iree.runtime.flags.parse_flags("--cuda_use_streams=true")
    rows = []
    index = json.loads((folder / INDEX).read_text())
    problems = {label: ConvProblem.from_json(one) for label, one in index["problems"].items()}
    print(_card())
    for number, (label, problem) in enumerate(problems.items()):
        ours, iree_folder = (folder / f"{number:02}.{side}" for side in ("ours", "iree"))
        strategy = (ours / STRATEGY).read_text()
        if (ours / PTX).exists():
            passed = graph_is_exact(ours, problem)
            verdict = "exact" if passed else "wrong"
        else:
            report = verify_artifact(Artifact.load(ours / "once.vmfb"), device="cuda")
            passed, verdict = report.passed, "exact" if report.passed else report.verdict
        note = (iree_folder / "note.txt").read_text()
        if as_cudnn_takes(problem) != problem:
            note = "cuDNN in f16"
        mine = _our_seconds(ours, problem, profiled=index["profiled"])
        is_profiled = index["profiled"] and not (ours / PTX).exists()
        cudnn = cudnn_seconds(problem, profiled=is_profiled)
        theirs = 0.0 if note else _kernel_seconds(iree_folder, problem)
        rows.append(
            {
                "label": label,
                "problem": problem.name,
                "strategy": strategy,
                "verdict": verdict,
                "passed": passed,
                "ours": mine * 1e6,
                "iree": theirs * 1e6,
                "cudnn": cudnn * 1e6,
                "to_iree": theirs / mine,
                "to_cudnn": cudnn / mine,
                "tflops": problem.flops * 1e-12 / mine,
                "note": note,
            }
        )
        print(f"{number:02} {label}", file=sys.stderr, flush=True)
    show(rows, COLUMNS)
    mean = math.exp(sum(math.log(row["to_cudnn"]) for row in rows) / len(rows))
    print(
        f"geometric mean of cuDNN / ours: {mean:.3f}, least {min(r['to_cudnn'] for r in rows):.2f}"
    )
    print(_card())
    (folder / "bench.json").write_text(json.dumps(rows, indent=1))
    return all(row["passed"] for row in rows)


def main() -> int:
    """Run the step that the command line names; 0 when all went well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=("compile", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chip", default="sm_80", help="a row of the targets table (sm_80)")
    parser.add_argument("--layers", help="a set of problems, or a list such as resnet50")
    parser.add_argument("--directions", default="bwd_weight", help="of the layers (bwd_weight)")
    parser.add_argument("--small-groups", action="store_true", help="groups of few channels")
    parser.add_argument("--batch", type=int, default=32, help="images of a layer (32)")
    parser.add_argument("--types", default="f16", help="data types of the layers (f16)")
    parser.add_argument("--compute", default="", help="what the layers are multiplied in")
    parser.add_argument("--ours", action="store_true", help="leave IREE's own kernels out")
    asked = parser.parse_args()
    if asked.step == "run":
        code = 0 if run_all(asked.folder) else 1
        sys.stdout.flush()
        os._exit(code)  # PyTorch's profiler and IREE's CUDA driver abort where both end
    problems = SMALL_GROUPS if asked.small_groups else PROBLEMS
    if asked.layers:
        of = asked.types, asked.directions, asked.compute
        problems = layers(asked.layers, asked.batch, *of)
    compile_all(asked.folder, asked.chip, problems, with_iree=not asked.ours)
    return 0


if __name__ == "__main__":
    sys.exit(main())
