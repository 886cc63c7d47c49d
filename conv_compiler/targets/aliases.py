# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other names of targets: what a product is called. A target's own name is that of its chip.

Sources: IREE's `KnownTargets.cpp` (`normalizeAMDGPUTarget`) for AMD, NVIDIA's list of compute
capabilities for NVIDIA.
"""

from __future__ import annotations

from types import MappingProxyType

_PRODUCTS = {
    "gfx908": ("mi100", "cdna1"),
    "gfx90a": ("mi210", "mi250", "mi250x", "cdna2"),
    "gfx942": ("mi300a", "mi300x", "mi308x", "mi325x", "cdna3"),
    "gfx950": ("mi350x", "mi355x", "cdna4"),
    "gfx1100": ("rx7900xt", "rx7900xtx", "w7800", "w7900"),
    "gfx1101": ("rx7700xt", "rx7800xt", "v710", "w7700"),
    "gfx1103": ("phoenix",),
    "gfx1150": ("strix-point",),
    "gfx1151": ("strix-halo",),
    "gfx1200": ("rx9060xt",),
    "gfx1201": ("r9700", "rx9070", "rx9070xt"),
    "sm_80": ("a100",),
    "sm_86": ("a10", "a40", "rtx3090"),
    "sm_89": ("l4", "l40", "rtx4090"),
    "sm_90a": ("h100", "h200"),
    "sm_100a": ("b200",),
    "sm_120a": ("rtx5080", "rtx5090"),
}
# alias -> target. In lower case: letters' case does not count in a target's name.
ALIASES = MappingProxyType(
    {alias: target for target, aliases in _PRODUCTS.items() for alias in aliases}
)
