# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the model knows of a chip, derived from its row in `conv_compiler.targets`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets import BACKENDS, TARGETS, Target
from conv_compiler.targets.target import Pipes


def _unmodelled(target: Target) -> str:
    """Why the model has no times of a target's kernels; empty where it has."""
    not_read = target.isa.not_executed if target.isa else ""
    return BACKENDS[target.backend].unmodelled or not_read


# Names of the chips whose kernels the model has times of.
CHIPS = tuple(row.name for row in TARGETS.values() if not _unmodelled(row))


@dataclass(frozen=True, kw_only=True)
class ChipFacts(Pipes):
    """The pipes of one chip, and what the unit that a workgroup occupies has of its parts.

    `units` counts such units (a CU, on RDNA a WGP), `simds` those of one, and `lds_bytes` is the
    LDS of one.
    """

    units: int
    simds: int
    lds_bytes: int


def chip_facts(target: Target) -> ChipFacts:
    """The facts of a target, or UnsupportedTarget where the model has none."""
    if why := _unmodelled(target):
        raise UnsupportedTarget(
            f"target {target.name}: not modelled, for {why}; the model knows {', '.join(CHIPS)}"
        )
    return rank_facts(target)


@lru_cache(maxsize=64)
def rank_facts(target: Target) -> ChipFacts:
    """The facts of a GPU, for NVIDIA's rough ones that rank tilings and nothing else.

    Raises UnsupportedTarget for a CPU.
    """
    pipes = target.pipes
    if pipes is None:
        return chip_facts(target)  # refuses it
    return ChipFacts(
        **vars(pipes),
        units=target.compute_units // pipes.cus_per_unit,
        simds=target.simds_per_unit * pipes.cus_per_unit,
        lds_bytes=target.lds_bytes * pipes.cus_per_unit,
    )
