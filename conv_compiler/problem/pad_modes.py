# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pads may be, by PyTorch's names: a row each."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

# mode -> the pixel that stands at a place of the extended image: place less the low pad, size.
PIXELS: MappingProxyType[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "circular": lambda at, size: at % size,
        "reflect": lambda at, size: size - 1 - abs(size - 1 - abs(at)),
        "replicate": lambda at, size: min(max(at, 0), size - 1),
    }
)
# The word for pads of zeros, which is the same as none.
ZEROS = "zeros"
MODES = (ZEROS, *PIXELS)
# By how many pixels a pad may be longer than the image is; None where any length will do.
SPARE = MappingProxyType({"circular": 0, "reflect": -1, "replicate": None})
