# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pads of a convolution: sizes of PyTorch's words, and what they are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from conv_compiler.errors import InvalidArray, did_you_mean
from conv_compiler.problem.pad_modes import MODES, SPARE, ZEROS

Ints = int | Sequence[int]


def each(value: Ints, ndim: int) -> list[int]:
    """A size of each dimension."""
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * ndim if len(sizes) == 1 else sizes


def padded(
    input: Tensor,
    filter: Sequence[int],
    padding: Ints | str,
    stride: Sequence[int],
    dilation: Sequence[int],
    mode: str,
) -> tuple[Tensor, list[int], str]:
    """The input, the pads on both sides that an op is to put around it, and what these are.

    Raises InvalidArray for a word that there is not, and for pads longer than the image has pixels
    for.
    """
    if mode not in MODES:
        near = did_you_mean(mode, MODES)
        raise InvalidArray(f"padding_mode {mode}: not in the table; {near}use {', '.join(MODES)}")
    ndim = len(stride)
    if padding == "same":
        low, high = _same(filter, stride, dilation)
    elif padding == "valid":
        low = high = [0] * ndim
    elif isinstance(padding, str):
        raise InvalidArray(f"padding {padding}: not a word for it; use same, valid or sizes")
    else:
        low = high = each(padding, ndim)
    mode = mode if any(high) else ZEROS
    if mode != ZEROS and (spare := SPARE[mode]) is not None:
        for size, pad in zip(input.shape[2:], high, strict=True):
            if pad > size + spare:
                raise InvalidArray(
                    f"padding {pad}: more than {mode} has of an image of {size}; "
                    f"use {size + spare} or less"
                )
    if low == high:
        return input, low, mode
    # An op puts as many pixels on both sides. Zeros behind the image may be there before, other
    # pads only together.
    if mode == ZEROS:
        more = [b - a for a, b in zip(low, high, strict=True)]
        return functional.pad(input, _around([0] * ndim, more)), low, ZEROS
    return functional.pad(input, _around(low, high), mode=mode), [0] * ndim, ZEROS


def _around(low: Sequence[int], high: Sequence[int]) -> list[int]:
    """Pads as `torch.nn.functional.pad` has them: the last dimension first."""
    pairs = list(zip(low, high, strict=True))
    return [size for pair in reversed(pairs) for size in pair]


def _same(
    filter: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Pads before and behind with which the output has the input's size; of an odd total the larger
    half is behind, as in PyTorch."""
    if any(step != 1 for step in stride):
        raise InvalidArray(f"padding same: not with stride {tuple(stride)}; use stride 1")
    totals = [d * (f - 1) for d, f in zip(dilation, filter, strict=True)]
    return [total // 2 for total in totals], [-(-total // 2) for total in totals]
