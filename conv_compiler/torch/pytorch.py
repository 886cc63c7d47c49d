# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three directions as PyTorch computes them itself, by ATen's own ops."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conv_compiler.torch.layouts import empty, is_last

_ATEN = torch.ops.aten


def fwd(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The output."""
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
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The gradient of an input with this image."""
    shape = (d_output.shape[0], weight.shape[1] * groups, *image)
    return _backward(d_output, _of_shape(d_output, shape), weight, stride, pad, dilation, groups, 0)


def bwd_weight(
    input: torch.Tensor,
    d_output: torch.Tensor,
    filter: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The gradient of a weight with this filter."""
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


def _of_shape(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of which only the shape is read, lying as another: PyTorch would copy one that does
    not lie densely."""
    return empty(like, shape, is_last(like))
