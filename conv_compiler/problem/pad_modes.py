# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pads may be, by PyTorch's names, a row each; and the pads that keep an image's size."""

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
# The word for pads that keep the image's size.
SAME = "same"
# By how many pixels a pad may be longer than the image is; None where any length will do.
SPARE = MappingProxyType({"circular": 0, "reflect": -1, "replicate": None})


def same_pads(
    image: tuple[int, ...],
    filter: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    **_: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The least pads, low and high, with which the output has ceil(image / stride) pixels.

    Of an odd number the larger half is high, as in TensorFlow, and in PyTorch for its stride of 1.
    """
    every = [
        max((-(-i // s) - 1) * s + (f - 1) * d + 1 - i, 0)
        for i, f, s, d in zip(image, filter, stride, dilation, strict=True)
    ]
    return tuple(p // 2 for p in every), tuple(-(-p // 2) for p in every)
