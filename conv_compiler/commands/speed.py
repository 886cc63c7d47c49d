# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a kernel is: measured on a device with a clock, modelled for a virtual one.

The two are never under one key: what is measured is `seconds`, what is modelled is
`modelled_seconds`, and its text ends in "modelled".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conv_compiler.commands.report import left, right, seconds

if TYPE_CHECKING:
    from pathlib import Path

    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.runtime.times import Times
    from conv_compiler.targets import Target


def tflops_text(value: float) -> str:
    """10^12 operations a second with the unit; below one, 10^9."""
    return f"{value:.3g} TFLOP/s" if value >= 1 else f"{value * 1e3:.3g} GFLOP/s"


def time_text(row: Mapping[str, Any]) -> str:
    """The time of a row, with the word "modelled" where it is; a dash where there is none."""
    if row.get("seconds"):
        return seconds(row["seconds"])
    modelled = row.get("modelled_seconds")
    return f"{seconds(modelled)} modelled" if modelled else "-"


SPEED = (
    right("time", "", time_text),
    right("min", "min_seconds", seconds, rank=8),
    right("max", "max_seconds", seconds, rank=8),
    right("speed", "tflops", tflops_text, rank=1),
    right("GB/s", "gb_per_s", lambda rate: f"{rate:.3g}", rank=6),
    right("% of peak", "of_peak", lambda share: f"{100 * share:.1f}", rank=5),
)
NOT_MODELLED = left("not modelled", "not_modelled", rank=9)


def measured(problem: ConvProblem, target: Target, times: Times) -> dict[str, Any]:
    """What measured times come to: `seconds` is the median, `gb_per_s` counts each tensor once.

    `of_peak` is the share of the peak of the target's fastest instruction for the problem's types,
    at the chip's highest clock. It is None where a target's row states no chip that is known so
    well: CPUs, and NVIDIA's rows, which stand for many cards.
    """
    share = peak_share(problem, target, times.median)
    return {
        "time": "measured",
        "seconds": times.median,
        "min_seconds": times.least,
        "max_seconds": times.most,
        "calls": times.calls,
        "tflops": problem.flops / times.median / 1e12,
        "gb_per_s": problem.bytes / times.median / 1e9,
        "of_peak": share,
    }


def peak_share(problem: ConvProblem, target: Target, time: float) -> float | None:
    """The share of a chip's peak that a time in seconds comes to; None where no peak is known."""
    from conv_compiler.model.facts import CHIPS
    from conv_compiler.model.roofline import peak_flops, work_of

    if target.name not in CHIPS:
        return None
    work = work_of(problem, target)
    return work.flops / time / peak_flops(work.operands, target)


def modelled(vmfb: Path, problem: ConvProblem) -> dict[str, Any]:
    """The modelled time of a module at the chip's highest clock, from its machine code alone.

    Where the model refuses the module, `not_modelled` says why.
    """
    from conv_compiler.errors import ConvError
    from conv_compiler.model.module import model_module

    try:
        return {"time": "modelled", "modelled_seconds": model_module(vmfb, problem=problem).seconds}
    except ConvError as error:
        return {"time": None, "modelled_seconds": None, "not_modelled": str(error)}
