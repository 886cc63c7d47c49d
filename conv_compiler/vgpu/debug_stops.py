# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a launch under the debugger stands, and where it is to stop next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from conv_compiler.vgpu.debug_calls import NEVER


class Reason(IntEnum):
    """Why a launch stopped; the native library's `Debug::Reason`."""

    STEP = 0
    BREAKPOINT = 1
    INTERRUPT = 2
    FINDING = 3
    FAULT = 4


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a launch stands: before the instruction at `address` of a wave of a workgroup.

    `step` counts the instructions of all waves so far, `executed` those of this one. `last_break`
    is the last step before this one at which a breakpoint was met, None for none. `text` is a
    finding or a fault.
    """

    step: int
    executed: int
    last_break: int | None
    address: int
    group: int
    wave: int
    reason: Reason
    text: str


@dataclass(frozen=True, kw_only=True)
class End:
    """A launch that ended; `error` says how it failed, and is empty where it did not."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Breakpoint:
    """An instruction to stop before, of one workgroup or wave where they are given."""

    address: int
    group: int | None = None
    wave: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Where to stop next: at a step, when a wave has executed so many, or at breakpoints.

    Breakpoints and findings count from step `armed` on.
    """

    until: int = NEVER
    wave: tuple[int, int, int] | None = None  # workgroup, wave, instructions it has executed
    breakpoints: Sequence[Breakpoint] = ()
    armed: int = 0


@dataclass(frozen=True, kw_only=True)
class WaveState:
    """A wave of the workgroup that runs: `state` is running, ended or at a barrier."""

    index: int
    address: int
    exec: int
    vcc: int
    m0: int
    scc: int
    lanes: int
    state: str
