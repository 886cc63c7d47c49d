# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our side, and where a time may be taken at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from conv_compiler.benchmark.sides import CallSide, Case
from conv_compiler.errors import DeviceUnavailable
from conv_compiler.runtime.devices import find_device, open_device, own_device, reason
from conv_compiler.runtime.kernel import load, to_numpy
from conv_compiler.targets import Target

if TYPE_CHECKING:
    from conv_compiler.artifacts.artifact import Artifact


def kernel_side(artifact: Artifact | Path, case: Case, detail: str) -> CallSide:
    """The call of a `.vmfb` with its operands on the device."""
    kernel = load(artifact, case.device)
    placed = [kernel.put(array) for array in case.operands]
    several = len(kernel.results) > 1  # the result is the first

    def call() -> Any:
        found = kernel(*placed)
        return found[0] if several else found

    return CallSide(detail=detail, call=call, to_numpy=to_numpy)


def our_side(case: Case, artifact: Artifact) -> CallSide:
    """Our kernel."""
    return kernel_side(artifact, case, artifact.strategy.text)


def clocked_device(target: Target, asked: str | None) -> str:
    """The name of the device to measure on: the one asked for, or that of the target.

    Raises DeviceUnavailable for a virtual device, which has no clock, and where no card is there.
    """
    hint = "a modelled time is no measurement; see conv-compiler inspect --model"
    if asked is not None:
        if find_device(asked).virtual:
            raise DeviceUnavailable(
                f"device {asked}: executes on the host and has no clock; {hint}"
            )
        return asked
    name = own_device(target)
    try:
        open_device(name, target.chip)
    except DeviceUnavailable as error:
        why = reason(error).partition("(")[2].rpartition(")")[0]
        raise DeviceUnavailable(
            f"device {name}: cannot be opened for {target.name} ({why or error}); {hint}"
        ) from None
    return name
