# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the candidates of a target are compared: by a clock of this machine, or by the model."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.errors import DeviceUnavailable
from conv_compiler.model.facts import CHIPS
from conv_compiler.runtime.devices import (
    device_text,
    find_device,
    open_device,
    own_device,
)
from conv_compiler.runtime.kernel import load
from conv_compiler.targets.host import host_cores
from conv_compiler.verification.slices import call_operands

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Each candidate is timed so often, in turns, so that what else the machine does meets all alike.
TURNS = 3
SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Timer:
    """Where times are from: `device` of this machine, with `text` for a person; the model where
    `device` is empty."""

    device: str
    text: str

    @property
    def measures(self) -> bool:
        """Whether a device takes the times."""
        return bool(self.device)


MODEL = Timer(device="", text="model")


def timer_of(target: Target, asked: str | None) -> Timer:
    """A clock where a device of this machine runs the target's code, else the model.

    Raises DeviceUnavailable where there is neither: a time that another machine would take is not
    guessed.
    """
    if asked is not None and find_device(asked).virtual:
        return _modelled(target, f"device {asked}: has no clock")
    device = asked or own_device(target)
    try:
        open_device(device, target.chip)
    except DeviceUnavailable as error:
        if asked is not None:
            raise
        return _modelled(target, str(error).partition(";")[0])
    if target.processor and target.processor.cores != host_cores():
        raise DeviceUnavailable(
            f"target {target.name}: has {target.processor.cores} cores, and this machine "
            f"{host_cores()}; measure on a machine of its kind"
        )
    return Timer(device=device, text=device_text(device))


def _modelled(target: Target, why: str) -> Timer:
    if target.name in CHIPS:
        return MODEL
    raise DeviceUnavailable(
        f"{why}, and {target.name} has no modelled times; tune it on a machine that has one, and "
        "bring the entries here (conv-compiler tuning export, import)"
    )


def measured(problem: ConvProblem, artifacts: Sequence[Artifact], device: str) -> tuple[float, ...]:
    """The median seconds of each artifact's calls on a device of this machine, on random data.

    Each is the median of TURNS medians, which were taken in turns.
    """
    operands = call_operands(problem, "random")
    kernels = [load(artifact, device) for artifact in artifacts]
    turns = [
        [kernel.times(*operands, budget=SECONDS).median for kernel in kernels] for _ in range(TURNS)
    ]
    return tuple(statistics.median(times) for times in zip(*turns, strict=True))
