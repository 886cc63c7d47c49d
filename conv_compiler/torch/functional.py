# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with the arguments of `torch.nn.functional`, and `ours`."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from conv_compiler.errors import InvalidArray
from conv_compiler.problem.pad_modes import ZEROS
from conv_compiler.torch import batching as batching
from conv_compiler.torch import derivatives as derivatives
from conv_compiler.torch.choice import DEFAULT, spelled, transposed
from conv_compiler.torch.layouts import is_last
from conv_compiler.torch.ops import bwd_data, fwd
from conv_compiler.torch.pads import Ints, each, padded

Ours = Iterable[str] | str


def _as_autocast(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """Tensors in the type that autocast wants for a convolution, where it is on."""
    kind = next(tensor for tensor in tensors if tensor is not None).device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(
        tensor.to(dtype) if tensor is not None and tensor.is_floating_point() else tensor
        for tensor in tensors
    )


def _checked(ndim: int, input: Tensor, weight: Tensor) -> bool:
    """Whether the input is one image without a batch; InvalidArray for other numbers of axes."""
    if weight.dim() != ndim + 2:
        raise InvalidArray(
            f"weight {tuple(weight.shape)}: not of {ndim} dimensions; give {ndim + 2} axes"
        )
    if input.dim() not in (ndim + 1, ndim + 2):
        raise InvalidArray(
            f"input {tuple(input.shape)}: not images of {ndim} dimensions; give {ndim + 2} axes, "
            f"or {ndim + 1} for one image"
        )
    if input.dtype != weight.dtype:
        raise InvalidArray(f"weight {weight.dtype}: not the input's type; give {input.dtype}")
    return input.dim() == ndim + 1


def conv(
    ndim: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    ours: Ours,
    padding_mode: str,
) -> Tensor:
    """A convolution of `ndim` dimensions; see `conv2d`."""
    input, weight, bias = _as_autocast(input, weight, bias)
    is_one = _checked(ndim, input, weight)
    if is_one:
        input = input.unsqueeze(0)
    strides, dilations = each(stride, ndim), each(dilation, ndim)
    shape = weight.shape[2:]
    input, pads, mode = padded(input, shape, padding, strides, dilations, padding_mode)
    sizes = (strides, pads, mode, dilations, groups)
    output: Tensor = fwd(input, weight, bias, *sizes, spelled(ours))
    return output.squeeze(0) if is_one else output


def conv_transpose(
    ndim: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
    ours: Ours,
) -> Tensor:
    """A transposed convolution of `ndim` dimensions: the data gradient of one whose output has the
    input's pixels; see `conv_transpose2d`."""
    input, weight, bias = _as_autocast(input, weight, bias)
    is_one = _checked(ndim, input, weight)
    if is_one:
        input = input.unsqueeze(0)
    strides, pads = each(stride, ndim), each(padding, ndim)
    dilations, more = each(dilation, ndim), each(output_padding, ndim)
    rows = zip(input.shape[2:], weight.shape[2:], strides, pads, dilations, more, strict=True)
    image, behind = [], []
    for pixels, taps, step, pad, apart, extra in rows:
        if extra >= max(step, apart):
            raise InvalidArray(
                f"output_padding {extra}: not below stride {step} or dilation {apart}; "
                "give a smaller one"
            )
        image.append((pixels - 1) * step - 2 * pad + apart * (taps - 1) + extra + 1)
        # A convolution of that image may have pixels more, of which the gradient is zero.
        behind.append(extra // step)
    if any(behind):
        input = functional.pad(input, [size for one in reversed(behind) for size in (0, one)])
    sizes = (strides, pads, ZEROS, dilations, groups, transposed(spelled(ours)))
    output: Tensor = bwd_data(input, weight, image, is_last(input), *sizes)
    if bias is not None:
        output = output + bias.view(-1, *[1] * ndim)
    return output.squeeze(0) if is_one else output


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    ours: Ours = DEFAULT,
    padding_mode: str = ZEROS,
) -> Tensor:
    """`torch.nn.functional.conv1d`; see `conv2d`."""
    sizes = (stride, padding, dilation, groups)
    return conv(1, input, weight, bias, *sizes, ours, padding_mode)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    ours: Ours = DEFAULT,
    padding_mode: str = ZEROS,
) -> Tensor:
    """`torch.nn.functional.conv2d` whose weight gradient is computed by a kernel of this package.

    The kernel reads tensors where they lie, contiguous or channels_last. Its sums have one order,
    so gradients are bitwise the same in every run.

    Args:
        input: Images, [N, C, H, W] or [C, H, W].
        weight: [K, C / groups, Y, X], of the input's type.
        bias: [K], or None.
        stride: Steps of the filter over the image.
        padding: Pixels on both sides, or `same` or `valid`.
        dilation: Distance of neighbouring taps.
        groups: Groups of channels.
        ours: Which of `fwd`, `bwd_data`, `bwd_weight` and `bwd_bias` are computed here; PyTorch
            computes the others. `fastest` times either once and keeps the answer.
        padding_mode: What pads are: `zeros`, or pixels of the image, by `reflect`, `replicate` or
            `circular`.

    Raises:
        InvalidArray: The tensors do not go together.
        UnsupportedProblem: There is no kernel for the type or the sizes.
        UnsupportedTarget: There is none for the device.

    Example:
        >>> image, weight = torch.randn(2, 8, 9, 9), torch.randn(16, 8, 3, 3, requires_grad=True)
        >>> conv_compiler.torch.conv2d(image, weight, padding=1).sum().backward()
        >>> weight.grad.shape
        torch.Size([16, 8, 3, 3])
    """
    sizes = (stride, padding, dilation, groups)
    return conv(2, input, weight, bias, *sizes, ours, padding_mode)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    ours: Ours = DEFAULT,
    padding_mode: str = ZEROS,
) -> Tensor:
    """`torch.nn.functional.conv3d`; see `conv2d`."""
    sizes = (stride, padding, dilation, groups)
    return conv(3, input, weight, bias, *sizes, ours, padding_mode)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    ours: Ours = DEFAULT,
) -> Tensor:
    """`torch.nn.functional.conv_transpose1d`; see `conv_transpose2d`."""
    sizes = (stride, padding, output_padding, groups, dilation)
    return conv_transpose(1, input, weight, bias, *sizes, ours)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    ours: Ours = DEFAULT,
) -> Tensor:
    """`torch.nn.functional.conv_transpose2d`, computed as `conv2d` is.

    Args:
        input: Images, [N, C, H, W] or [C, H, W].
        weight: [C, K / groups, Y, X], of the input's type.
        bias: [K], or None.
        stride: Steps of the filter over the output.
        padding: Pixels that the output lacks on both sides.
        output_padding: Pixels that it has more behind.
        groups: Groups of channels.
        dilation: Distance of neighbouring taps.
        ours: As in `conv2d`, of this layer: `fwd` is its output.

    Raises:
        InvalidArray, UnsupportedProblem, UnsupportedTarget: As in `conv2d`.

    Example:
        >>> image, weight = torch.randn(2, 8, 9, 9), torch.randn(8, 4, 2, 2, requires_grad=True)
        >>> conv_compiler.torch.conv_transpose2d(image, weight, stride=2).shape
        torch.Size([2, 4, 18, 18])
    """
    sizes = (stride, padding, output_padding, groups, dilation)
    return conv_transpose(2, input, weight, bias, *sizes, ours)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
    *,
    ours: Ours = DEFAULT,
) -> Tensor:
    """`torch.nn.functional.conv_transpose3d`; see `conv_transpose2d`."""
    sizes = (stride, padding, output_padding, groups, dilation)
    return conv_transpose(3, input, weight, bias, *sizes, ours)
