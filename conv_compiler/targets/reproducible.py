# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The target whose kernels are the same wherever they are compiled and run.

Of a chip or a CPU by name that is the target itself: nothing in its row is of this machine. In the
place of `cpu` it is a CPU by name that most hosts of an architecture can run. Its tiles and parts
are dealt out for a number of cores that is fixed, and its code has no wider vectors than it names.
"""

from __future__ import annotations

from types import MappingProxyType

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets import Target, find_target
from conv_compiler.targets.host import host_architecture

# architecture -> a row of PROCESSORS. x86-64-v3 is AVX2 and FMA: Intel's since 2013, AMD's since
# 2015. Every 64-bit Arm server that Linux distributions name has what Neoverse N1 has.
BASELINES = MappingProxyType({"x86_64": "x86-64-v3", "aarch64": "neoverse-n1"})


def reproducible(target: Target) -> Target:
    """The target to compile for in a target's place; UnsupportedTarget where there is none."""
    if target.chip != "host":
        return target
    architecture = host_architecture()
    if architecture not in BASELINES:
        raise UnsupportedTarget(
            f"target {target.name}: no CPU by name is for {architecture}, whose results would be "
            f"the same elsewhere; known: {', '.join(BASELINES)}"
        )
    return find_target(f"cpu-{BASELINES[architecture]}")


def settled(target: str, tuned: bool, is_reproducible: bool) -> tuple[str, bool]:
    """The name of a target, and whether the tuning store is read: as they are, or reproducible."""
    return (reproducible(find_target(target)).name, False) if is_reproducible else (target, tuned)
