# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data caches of a CPU's core: one row a CPU by name, and those of this host.

Sources:

- Zen 3, 4 and 5: AMD's Software Optimization Guides 56665, 57647 and 58455.
- Sapphire Rapids: Intel's Optimization Reference Manual, 248966.
- Neoverse N1, V1 and V2: Arm's Technical Reference Manuals. Arm leaves the second cache to the
  maker; those here are of Graviton 2, 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from conv_compiler.targets.limits import LINE_BYTES

KIB = 2**10


@dataclass(frozen=True, kw_only=True)
class Caches:
    """Lines of 64 bytes: `first_ways` in each of `first_sets` sets of the first data cache. The
    second cache has `second_bytes`."""

    first_sets: int = 64
    first_ways: int = 8
    second_bytes: int = 1024 * KIB


# Where nothing is known: 32 KiB, and 1 MiB.
COMMON = Caches()
CACHES = MappingProxyType(
    {
        "znver3": Caches(second_bytes=512 * KIB),
        "znver4": COMMON,
        "znver5": Caches(first_ways=12),
        "sapphirerapids": Caches(first_ways=12, second_bytes=2048 * KIB),
        "neoverse-n1": Caches(first_sets=256, first_ways=4),
        "neoverse-v1": Caches(first_sets=256, first_ways=4),
        "neoverse-v2": Caches(first_sets=256, first_ways=4, second_bytes=2048 * KIB),
    }
)

_LINUX = Path("/sys/devices/system/cpu/cpu0/cache")


@lru_cache(maxsize=1)
def host_caches(folder: Path = _LINUX) -> Caches:
    """Those of this host as Linux lists them; COMMON where it lists none."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for entry in sorted(folder.glob("index*")):
        try:
            level, kind, sets, ways = (
                (entry / name).read_text().strip()
                for name in ("level", "type", "number_of_sets", "ways_of_associativity")
            )
            found[level, kind] = int(sets), int(ways)
        except (OSError, ValueError):  # not told of every cache, as in some containers
            continue
    first = found.get(("1", "Data"), (COMMON.first_sets, COMMON.first_ways))
    second = found.get(("2", "Unified"), (COMMON.second_bytes // LINE_BYTES, 1))
    if min(*first, *second) <= 0:
        return COMMON
    return Caches(
        first_sets=first[0], first_ways=first[1], second_bytes=LINE_BYTES * math.prod(second)
    )
