# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `inspect --model` prints: a row a kernel, the pipes of the main one, its main loop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.report import Output, left, right, seconds, show, show_numbered

if TYPE_CHECKING:
    from conv_compiler.model.kernel_model import KernelModel
    from conv_compiler.model.module import ModuleModel
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.vgpu import KernelCounters


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _sustained_seconds(row: dict[str, Any] | None) -> str:
    return seconds(row["seconds"]) if row else "-"


KERNELS = (
    left("kernel", "kernel", shape="cut"),
    right("workgroups", "workgroups", rank=3),
    right("waves", "waves", rank=7),
    right("VGPRs", "vgprs", rank=4),
    right("LDS", "lds_bytes", rank=5),
    right("waves/SIMD", "waves_per_simd", _number, rank=6),
    right("rounds", "rounds", rank=8),
    right("iterations", "iterations", _number, rank=8),
    right("at boost", "seconds", seconds),
    left("bound by", "binds"),
    right("sustained", "sustained", _sustained_seconds),
    left("bound by", "sustained", lambda row: row["binds"] if row else "-", rank=2),
    right("matrix busy %", "matrix_busy", _percent, rank=2),
    right("TFLOP/s", "tflops", _number, rank=1),
)
PIPES = (
    left("pipe", "pipe"),
    right("at boost", "seconds", seconds),
    right("of the time %", "share", _percent),
    right("sustained", "sustained", lambda time: "-" if time is None else seconds(time)),
)
LOOP = (
    left("main loop", "what"),
    right("an iteration", "iteration", _number),
    right("a 16x16x16 equivalent", "equivalent", _number),
)
_LOOP_ROWS = {
    "matrix": "matrix instructions",
    "valu": "VALU",
    "salu": "SALU",
    "lds_reads": "LDS reads",
    "lds_writes": "LDS writes",
    "loads": "loads",
    "lds_conflict_cycles": "LDS conflict cycles",
    "barriers": "barriers",
}
_SOURCES = {
    "static": "counts from the machine code: no LDS conflicts, every byte of a cache line used",
    "virtual": "counts from a run on the virtual GPU",
    "look": "counts from the machine code; LDS conflicts, cache lines and dies that share them "
    "from a first look on the virtual GPU",
}


# Barriers a wave passes in a first look: two or three iterations of a pipelined loop. A workgroup
# of one wave has none: it ends by its iterations, of which others make many more before they meet
# so many.
LOOK_BARRIERS, LOOK_ITERATIONS = 6, 128


def count_on_virtual_gpu(vmfb: Path, look: bool = False) -> tuple[KernelCounters, ...]:
    """Run a module on its chip's virtual device, once or only to `look`, and return the counts."""
    import numpy as np

    from conv_compiler import vgpu
    from conv_compiler.runtime.kernel import load

    kernel = load(vmfb, "vgpu")
    # What is counted hangs on addresses, not on data.
    operands = [
        np.zeros(tuple(size or 1 for size in one.shape), one.dtype) for one in kernel.operands
    ]
    most = {"most_barriers": LOOK_BARRIERS, "most_iterations": LOOK_ITERATIONS} if look else {}
    with vgpu.counting(**most):
        kernel(*operands)
    return vgpu.counters()


def model(vmfb: Path, source: str = "static", problem: ConvProblem | None = None) -> ModuleModel:
    """Model a `.vmfb` by counts of one of the sources: "static", "look" or "virtual".

    `problem` is what it computes, where that is known.
    """
    from conv_compiler.model.module import model_module

    # Refuses what cannot be modelled before anything is run.
    static = model_module(vmfb, problem=problem)
    if source == "static":
        return static
    look = source == "look"
    return model_module(vmfb, count_on_virtual_gpu(vmfb, look), look, problem)


def pipe_rows(model: KernelModel) -> list[dict[str, Any]]:
    """The pipes of a kernel, the busiest first, and the unit and launch, at both ends.

    A pipe whose peak is not known is a row of its own at the sustained end.
    """
    record = model.to_json()
    pipes: Mapping[str, float] = record["pipes"]
    sustained = (record["sustained"] or {}).get("pipes", {})
    names = sorted({*pipes, *sustained}, key=lambda name: -pipes.get(name, 0.0))
    return [
        {
            "pipe": name,
            "seconds": pipes.get(name, 0.0),
            "share": pipes.get(name, 0.0) / record["seconds"],
            "sustained": sustained.get(name),
        }
        for name in names
    ]


def loop_rows(model: KernelModel) -> list[dict[str, Any]]:
    """Instructions of an iteration, and for each 16x16x16 matrix instruction's work."""
    iteration = model.counts.iteration
    return [
        {
            "what": what,
            "iteration": getattr(iteration, name),
            "equivalent": getattr(iteration, name) / iteration.equivalents
            if iteration.equivalents
            else None,
        }
        for name, what in _LOOP_ROWS.items()
    ]


def _range(module: ModuleModel) -> str:
    """Both ends of a module's time, and what they rest on."""
    rates, most = module.target.sustained, module.sustained_seconds
    if rates is None or most is None:
        return f"{seconds(module.seconds)} at the boost clock (no sustained rates were published)"
    ends = f"{seconds(module.seconds)} at the boost clock to {seconds(most)} at sustained rates"
    return f"{ends} ({rates.card})"


def print_model(module: ModuleModel, how: Output) -> None:
    """Print the model of a module; CSV has a line a kernel."""
    if how.form == "json":
        print(json.dumps(module.to_json(), indent=1))
        return
    kernels = [one.to_json() for one in module.kernels]
    if how.form == "csv":
        return show(kernels, KERNELS, how)
    main = module.main
    print(f"{module.target.name}, modelled, not measured, in all")
    print(_range(module))
    print(_SOURCES[main.counts.source])
    show_numbered(kernels, KERNELS, "kernel", how)
    for fill in module.fills:
        print(f"and {fill.kind} of {fill.bytes} bytes")
    print()
    show(pipe_rows(main), PIPES, how)
    if main.counts.body:
        print()
        show(loop_rows(main), LOOP, how)
