# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a kernel can run: one row a chip (`amd.py`, `nvidia.py`) and one a CPU (`cpu.py`).

Importing this imports neither numpy nor IREE.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from conv_compiler.errors import UnsupportedTarget, did_you_mean
from conv_compiler.targets.aliases import ALIASES
from conv_compiler.targets.amd import AMD
from conv_compiler.targets.backends import BACKENDS, Backend
from conv_compiler.targets.cpu import CPUS
from conv_compiler.targets.mma import Mma
from conv_compiler.targets.nvidia import NVIDIA
from conv_compiler.targets.target import Isa, Target

__all__ = [
    "ALIASES",
    "BACKENDS",
    "MOST_CORES",
    "TARGETS",
    "VIRTUAL",
    "Backend",
    "Isa",
    "Mma",
    "Target",
    "canonical_name",
    "executed_isa",
    "find_target",
]

TARGETS = MappingProxyType({row.name: row for row in (*CPUS, *AMD, *NVIDIA)})

# The chips that the virtual GPU runs code of.
VIRTUAL = tuple(name for name, row in TARGETS.items() if row.is_virtual)

# More than any host has; beyond it the choice among distributions takes long.
MOST_CORES = 1024


def canonical_name(name: str) -> str:
    """A target's own name for an alias or another spelling of it; an unknown name as it is."""
    base, at, cores = name.partition("@")
    lower = base.lower()
    return ALIASES.get(lower, lower if lower in TARGETS else base) + at + cores


def find_target(name: str) -> Target:
    """The row of a chip or a CPU, or UnsupportedTarget naming those there are.

    The name may be an alias (`mi300x`), in letters of either case. A CPU's name may end in the
    number of cores to distribute work to: `cpu-x86-64-v3@16`.
    """
    base, at, cores = canonical_name(name).partition("@")
    row = TARGETS.get(base)
    if row is None:
        near = did_you_mean(base, (*TARGETS, *ALIASES))
        raise UnsupportedTarget(
            f"target {name}: not in the table; {near}known: {', '.join(TARGETS)}"
        )
    if not at:
        return row
    if row.processor is None:
        raise UnsupportedTarget(f"target {name}: cores are for CPUs by name; use {base}")
    if not (cores.isdecimal() and 1 <= int(cores) <= MOST_CORES):
        raise UnsupportedTarget(
            f"target {name}: cores {cores} is not 1 to {MOST_CORES}; write {base}@16, or {base} "
            f"for {row.processor.cores}"
        )
    counted = replace(row.processor, cores=int(cores))
    return replace(row, name=f"{base}@{counted.cores}", processor=counted)


def executed_isa(chip: str) -> Isa:
    """The instruction set of a chip that the virtual GPU runs code of.

    Raises UnsupportedTarget for other chips, and says why where it is known.
    """
    row = TARGETS.get(chip)
    isa = row.isa if row else None
    if isa is None or isa.not_executed:
        why = f", for {isa.not_executed}" if isa else ""
        near = "" if isa else did_you_mean(chip, VIRTUAL)
        raise UnsupportedTarget(
            f"chip {chip}: has no virtual device{why}; {near}known: {', '.join(VIRTUAL)}"
        )
    return isa
