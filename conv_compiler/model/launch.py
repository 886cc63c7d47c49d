# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dispatch: its grid, the registers and LDS of its kernel, and how many share a compute unit."""

from __future__ import annotations

from dataclasses import dataclass

from conv_compiler.model.facts import ChipFacts


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a kernel is launched.

    `vgprs` are those a lane is given, accumulation registers included; `read_bytes` and
    `written_bytes` the sizes of the buffers it reads and writes, each byte once, and of what is
    written no more than its stores can reach; `warm_bytes` are those read that an earlier kernel
    of the same module has written. `dies` tells how many of the chip's dies with a cache of their
    own read each byte; None where that is not known: all.
    """

    workgroups: int
    waves: int
    vgprs: int
    sgprs: int = 0
    lds_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    warm_bytes: int = 0
    dies: float | None = None


def resident(launch: Launch, chip: ChipFacts) -> int:
    """Workgroups a compute unit can hold at once, by registers, wave slots, LDS and barriers.

    At least one: a kernel that compiled can run.
    """
    granules = -(-max(1, launch.vgprs) // chip.vgpr_granule)
    waves = min(chip.waves_per_simd, chip.vgprs_per_simd // (granules * chip.vgpr_granule))
    by_waves = waves * chip.simds // launch.waves
    by_lds = chip.lds_bytes // launch.lds_bytes if launch.lds_bytes else chip.workgroups
    return max(1, min(by_waves, by_lds, chip.workgroups))


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """How a grid lies on the chip.

    `resident` workgroups share the busiest unit at a time, `waves_per_simd` waves a SIMD; `rounds`
    is how often the chip is filled, and `tail` the share of unit-rounds that has work.
    """

    resident: int
    waves_per_simd: float
    busiest: int
    rounds: int
    tail: float


def occupancy(launch: Launch, chip: ChipFacts) -> Occupancy:
    """Workgroups spread over the units one by one, each unit taking as many as it can hold."""
    busiest = -(-launch.workgroups // chip.units)
    held = min(resident(launch, chip), busiest)
    return Occupancy(
        resident=held,
        waves_per_simd=held * launch.waves / chip.simds,
        busiest=busiest,
        rounds=-(-busiest // held),
        tail=launch.workgroups / (chip.units * busiest),
    )
