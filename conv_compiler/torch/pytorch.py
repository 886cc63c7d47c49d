# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three directions as PyTorch computes them itself, by ATen's own ops."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conv_compiler.problem.extended import pixels_of, places_of
from conv_compiler.problem.pad_modes import ZEROS
from conv_compiler.torch.layouts import empty, is_last

_ATEN = torch.ops.aten


def fwd(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    pad: Sequence[int],
    pad_mode: str,
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The output."""
    input, pad = _extended(input, pad, pad_mode)
    result: torch.Tensor = _ATEN.convolution(
        input, weight, bias, stride, pad, dilation, False, [0] * len(stride), groups
    )
    return result


def bwd_data(
    d_output: torch.Tensor,
    weight: torch.Tensor,
    image: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    pad_mode: str,
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The gradient of an input with this image."""
    sizes, within = image, pad
    if pad_mode != ZEROS:
        sizes = [size + 2 * one for size, one in zip(image, pad, strict=True)]
        within = [0] * len(pad)
    like = _of_shape(d_output, (d_output.shape[0], weight.shape[1] * groups, *sizes))
    found = _backward(d_output, like, weight, stride, within, dilation, groups, 0)
    return found if pad_mode == ZEROS else _added_up(found, image, pad, pad_mode)


def bwd_weight(
    input: torch.Tensor,
    d_output: torch.Tensor,
    filter: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    pad_mode: str,
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The gradient of a weight with this filter."""
    input, pad = _extended(input, pad, pad_mode)
    shape = (d_output.shape[1], input.shape[1] // groups, *filter)
    return _backward(d_output, input, _of_shape(input, shape), stride, pad, dilation, groups, 1)


def _backward(
    d_output: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    which: int,
) -> torch.Tensor:
    """The gradient of the input (0) or of the weight (1)."""
    wanted = [number == which for number in range(3)]
    none = [0] * len(stride)
    arguments = (stride, pad, dilation, False, none, groups, wanted)
    gradients = _ATEN.convolution_backward(d_output, input, weight, None, *arguments)
    result: torch.Tensor = gradients[which]
    return result


def _extended(
    image: torch.Tensor, pad: Sequence[int], mode: str
) -> tuple[torch.Tensor, Sequence[int]]:
    """The image with pads that repeat its pixels, and the pads of zeros that are left."""
    if mode == ZEROS:
        return image, pad
    for axis, one in enumerate(pad, start=2):
        pixels = pixels_of(mode, one, image.shape[axis], one)
        image = image.index_select(axis, torch.tensor(pixels, device=image.device))
    return image, [0] * len(pad)


def _added_up(
    found: torch.Tensor, image: Sequence[int], pad: Sequence[int], mode: str
) -> torch.Tensor:
    """The adjoint: each pixel with what its places in the extended image have, in a fixed order."""
    for axis, (size, one) in enumerate(zip(image, pad, strict=True), start=2):
        every = places_of(mode, one, size, one)
        ones = [1] * (found.dim() - axis - 1)
        total = None
        for term in range(max(map(len, every))):
            places = [places[term] if term < len(places) else -1 for places in every]
            at = torch.tensor(places, device=found.device)
            taken = found.index_select(axis, at.clamp(min=0))
            taken = taken.masked_fill((at < 0).view(-1, *ones), 0)
            total = taken if total is None else total + taken
        found = found if total is None else total
    return found


def _of_shape(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of which only the shape is read, lying as another: PyTorch would copy one that does
    not lie densely."""
    return empty(like, shape, is_last(like))
