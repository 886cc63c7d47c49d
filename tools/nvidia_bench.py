#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernel times of our CUDA code, of IREE's own and of cuDNN's on an NVIDIA GPU.

    tools/nvidia_bench.py compile FOLDER   on any machine with iree-base-compiler
    tools/nvidia_bench.py run FOLDER       on a machine with a GPU, iree-base-runtime and PyTorch

A module is compiled twice, once with every dispatch repeated: the difference of the two calls'
medians is the time of the kernels alone, all dispatches of a call together. cuDNN's is that of a
CUDA graph of as many calls. `run` checks our results first (integers, exactly), prints a table and
writes FOLDER/bench.json; it exits with 1 when a kernel of ours is wrong.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvidia_check import two_steps

from conv_compiler.artifacts.artifact import Artifact
from conv_compiler.commands.report import left, right, show
from conv_compiler.problem.conv_problem import ConvProblem

REPEATS = 33
SECONDS = 0.3  # spent on each median
LAYOUT = "NHWC_KYXC_NHWK"


def _layer(n: int, image: int, c: int, k: int, window: int = 3, **more: Any) -> ConvProblem:
    pad = window // 2
    sizes = {"n": n, "c": c, "k": k, "image": (image, image), "filter": (window, window)}
    return ConvProblem(**{**sizes, "pad_low": (pad, pad), "layout": LAYOUT, **more})


PROBLEMS = {
    "ResNet-50 layer1 3x3": _layer(32, 56, 64, 64),
    "ResNet-50 layer2 3x3": _layer(32, 28, 128, 128),
    "ResNet-50 layer3 3x3": _layer(32, 14, 256, 256),
    "ResNet-50 layer3 3x3 bf16": _layer(32, 14, 256, 256, dtype="bf16"),
    "ResNet-50 layer4 3x3": _layer(32, 7, 512, 512),
    "ResNet-50 layer1 1x1": _layer(32, 56, 64, 256, 1),
    "ResNet-50 layer3 1x1": _layer(32, 14, 1024, 256, 1),
    "ResNet-50 stem": _layer(32, 224, 3, 64, 7, stride=(2, 2)),
    "RetinaNet head": _layer(8, 100, 256, 36),
    "RetinaNet classes": _layer(8, 25, 256, 819),
    "ResNeXt-50 layer1 3x3": _layer(32, 56, 4, 4, g=32),
    "MobileNet depthwise": _layer(32, 56, 1, 1, g=144),
}

COLUMNS = (
    left("problem", "label"),
    left("ours", "strategy"),
    left("integers", "verdict"),
    right("ours us", "ours", lambda us: f"{us:.1f}"),
    right("IREE us", "iree", lambda us: f"{us:.1f}" if us else "-"),
    right("cuDNN us", "cudnn", lambda us: f"{us:.1f}"),
    right("IREE / ours", "to_iree", lambda ratio: f"{ratio:.2f}" if ratio else "-"),
    right("cuDNN / ours", "to_cudnn", lambda ratio: f"{ratio:.2f}"),
    left("note", "note"),
)


def compile_all(folder: Path, chip: str) -> None:
    """Both sides of every problem, once as they are and once with every dispatch repeated."""
    from iree_boo import flags, payload

    from conv_compiler.compiler.compile import compile
    from conv_compiler.compiler.stages import compiler_flags, run_compiler, stage_texts
    from conv_compiler.errors import CompileFailed
    from conv_compiler.targets import find_target
    from conv_compiler.targets.resolve import resolve

    target = find_target(chip)
    repeated = f"--iree-hal-benchmark-dispatch-repeat-count={REPEATS}"
    for number, (label, problem) in enumerate(PROBLEMS.items()):
        ours, iree = (folder / f"{number:02}.{side}" for side in ("ours", "iree"))
        for work in (ours, iree):
            work.mkdir(parents=True, exist_ok=True)
        artifact = compile(problem, chip, tuned=False)
        artifact.save(ours / "once.vmfb")
        stage_texts(
            resolve(problem, target, artifact.strategy.mma), artifact.strategy, ours, "scheduled"
        )
        run_compiler([*compiler_flags(target), repeated], ours)
        (ours / "module.vmfb").rename(ours / "repeated.vmfb")
        (iree / "module.mlir").write_text(payload(problem))
        note = ""
        try:
            for name, extra in (("once", []), ("repeated", [repeated])):
                run_compiler([*flags(target), *extra], iree)
                (iree / "module.vmfb").rename(iree / f"{name}.vmfb")
        except CompileFailed as failed:
            note = str(failed)
        (iree / "note.txt").write_text(note)
        print(f"{number:02} {label}: {artifact.strategy.text} {note}", flush=True)


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


def _cudnn(problem: ConvProblem) -> Callable[[], Any]:
    """A call of PyTorch's weight gradient on channels-last tensors."""
    import torch

    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[problem.dtype]
    g = problem.g
    image, gradient, weight = (
        torch.rand(shape, dtype=dtype, device="cuda").to(memory_format=torch.channels_last)
        for shape in (
            (problem.n, g * problem.c, *problem.image),
            (problem.n, g * problem.k, *problem.out_image),
            (g * problem.k, problem.c, *problem.filter),
        )
    )
    numbers = (list(problem.stride), list(problem.pad_low), list(problem.dilation))
    mask = [False, True, False]
    return lambda: torch.ops.aten.convolution_backward(
        gradient, image, weight, None, *numbers, False, [0, 0], g, mask
    )


def _cudnn_seconds(problem: ConvProblem) -> float:
    """Seconds of one call within a graph of many; cuDNN searches its fastest kernel first."""
    import torch

    torch.backends.cudnn.benchmark = True
    call = _cudnn(problem)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            call()
    times = []
    for _ in range(12):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / REPEATS)
    return statistics.median(times[2:])


def run_all(folder: Path) -> bool:
    """Measure every problem in the folder; True when all of ours are right."""
    import iree.runtime

    from conv_compiler.verification.verify import verify_artifact

    # One after another: in a graph the repetitions of a dispatch would overlap.
    iree.runtime.flags.parse_flags("--cuda_use_streams=true")
    rows = []
    for number, (label, problem) in enumerate(PROBLEMS.items()):
        ours, iree_folder = (folder / f"{number:02}.{side}" for side in ("ours", "iree"))
        report = verify_artifact(Artifact.load(ours / "once.vmfb"), device="cuda")
        note = (iree_folder / "note.txt").read_text()
        mine, cudnn = _kernel_seconds(ours, problem), _cudnn_seconds(problem)
        theirs = 0.0 if note else _kernel_seconds(iree_folder, problem)
        rows.append(
            {
                "label": label,
                "problem": problem.name,
                "strategy": report.strategy,
                "verdict": "exact" if report.passed else report.verdict,
                "passed": report.passed,
                "ours": mine * 1e6,
                "iree": theirs * 1e6,
                "cudnn": cudnn * 1e6,
                "to_iree": theirs / mine,
                "to_cudnn": cudnn / mine,
                "note": note,
            }
        )
        print(f"{number:02} {label}", file=sys.stderr, flush=True)
    show(rows, COLUMNS)
    (folder / "bench.json").write_text(json.dumps(rows, indent=1))
    return all(row["passed"] for row in rows)


if __name__ == "__main__":
    sys.exit(two_steps(__doc__ or "", compile_all, run_all))
