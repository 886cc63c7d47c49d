# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The three directions as ops of PyTorch, each the derivative of the others, and the gradient of
a bias.

`torch.ops.conv_compiler.{fwd, bwd_data, bwd_weight, bwd_bias}` have rules for autograd to any
order, for fake tensors (`torch.compile`, `torch.export`) and for `torch.vmap`. `ours` is a word of
`choice.spelled`, `pad_mode` one of `problem.pad_modes`. A result lies as its operand images do, or
as `last` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from conv_compiler.problem.directions import BIAS
from conv_compiler.problem.pad_modes import ZEROS
from conv_compiler.torch import pytorch
from conv_compiler.torch.choice import FASTEST, is_ours
from conv_compiler.torch.kernels import Call
from conv_compiler.torch.layouts import dense, empty, is_last

NAMESPACE = "conv_compiler"
_SIZES = "int[] stride, int[] pad, str pad_mode, int[] dilation, int groups, str ours"
_SCHEMAS = {
    "fwd": f"(Tensor input, Tensor weight, Tensor? bias, {_SIZES}) -> Tensor",
    "bwd_data": f"(Tensor d_output, Tensor weight, int[] image, bool last, {_SIZES}) -> Tensor",
    "bwd_weight": f"(Tensor input, Tensor d_output, int[] filter, bool last, {_SIZES}) -> Tensor",
    BIAS: "(Tensor d_output, str ours) -> Tensor",
}
Ints = Sequence[int]


def _op(name: str) -> Callable[[Callable[..., Tensor]], Any]:
    """Make a function the op of a name, on every device, in its place.

    `torch.library.custom_op` would look for results that are operands at each call. None is.
    """

    def made(function: Callable[..., Tensor]) -> Any:
        op = f"{NAMESPACE}::{name}"
        torch.library.define(op, _SCHEMAS[name], tags=torch.Tag.pt2_compliant_tag)
        torch.library.impl(op, "default", function)
        return getattr(getattr(torch.ops, NAMESPACE), name).default

    return made


def _outs(image: Ints, filter: Ints, stride: Ints, pad: Ints, dilation: Ints) -> list[int]:
    """The output's pixels along each dimension."""
    rows = zip(image, filter, stride, pad, dilation, strict=True)
    return [(i + 2 * p - d * (f - 1) - 1) // s + 1 for i, f, s, p, d in rows]


def _call(
    direction: str,
    first: Tensor,
    lies: tuple[bool, bool],
    channels: tuple[int, int],
    image: Ints,
    filter: Ints,
    sizes: tuple[Ints, Ints, str, Ints, int],
) -> Call:
    """The call of a direction; `lies` are the orders of images and weight, `channels` those of
    output and input."""
    stride, pad, pad_mode, dilation, groups = sizes
    return Call(
        direction=direction,
        device=first.device,
        dtype=first.dtype,
        data_last=lies[0],
        weight_last=lies[1],
        n=first.shape[0],
        g=groups,
        k=channels[0] // groups,
        c=channels[1] // groups,
        image=tuple(image),
        filter=tuple(filter),
        stride=tuple(stride),
        pad=tuple(pad),
        pad_mode=pad_mode,
        dilation=tuple(dilation),
    )


def _fwd_call(input: Tensor, weight: Tensor, *sizes: Any) -> Call:
    channels, lies = (weight.shape[0], input.shape[1]), (is_last(input), is_last(weight))
    return _call("fwd", input, lies, channels, input.shape[2:], weight.shape[2:], sizes)


def _bwd_data_call(d_output: Tensor, weight: Tensor, image: Ints, last: bool, *sizes: Any) -> Call:
    channels, lies = (weight.shape[0], weight.shape[1] * sizes[4]), (last, is_last(weight))
    return _call("bwd_data", d_output, lies, channels, image, weight.shape[2:], sizes)


def _bwd_weight_call(
    input: Tensor, d_output: Tensor, filter: Ints, last: bool, *sizes: Any
) -> Call:
    channels, lies = (d_output.shape[1], input.shape[1]), (is_last(input), last)
    return _call("bwd_weight", input, lies, channels, input.shape[2:], filter, sizes)


def _bwd_bias_call(d_output: Tensor) -> Call:
    """That of a filter of one tap, which has the same output."""
    image, channels = d_output.shape[2:], d_output.shape[1]
    unit, zeros = [1] * len(image), [0] * len(image)
    lies = (is_last(d_output), False)
    return _call(BIAS, d_output, lies, (channels, 1), image, unit, (unit, zeros, ZEROS, unit, 1))


@_op("fwd")
def fwd(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    pad: Ints,
    pad_mode: str,
    dilation: Ints,
    groups: int,
    ours: str,
) -> Tensor:
    """The output, plus the bias of each channel."""
    sizes = (stride, pad, pad_mode, dilation, groups)
    call = _fwd_call(input, weight, *sizes)

    def here() -> Tensor:
        output = call.compute(input, weight)
        return output if bias is None else output.add_(bias.view(-1, *[1] * len(stride)))

    def there() -> Tensor:
        return dense(pytorch.fwd(input, weight, bias, *sizes), call.data_last)

    return here() if is_ours(ours, call, here, there) else there()


@_op("bwd_data")
def bwd_data(
    d_output: Tensor,
    weight: Tensor,
    image: Ints,
    last: bool,
    stride: Ints,
    pad: Ints,
    pad_mode: str,
    dilation: Ints,
    groups: int,
    ours: str,
) -> Tensor:
    """The gradient of an input with this image."""
    sizes = (stride, pad, pad_mode, dilation, groups)
    call = _bwd_data_call(d_output, weight, image, last, *sizes)

    def here() -> Tensor:
        return call.compute(d_output, weight)

    def there() -> Tensor:
        return dense(pytorch.bwd_data(d_output, weight, image, *sizes), last)

    return here() if is_ours(ours, call, here, there) else there()


@_op("bwd_weight")
def bwd_weight(
    input: Tensor,
    d_output: Tensor,
    filter: Ints,
    last: bool,
    stride: Ints,
    pad: Ints,
    pad_mode: str,
    dilation: Ints,
    groups: int,
    ours: str,
) -> Tensor:
    """The gradient of a weight with this filter."""
    sizes = (stride, pad, pad_mode, dilation, groups)
    call = _bwd_weight_call(input, d_output, filter, last, *sizes)

    def here() -> Tensor:
        return call.compute(input, d_output)

    def there() -> Tensor:
        return dense(pytorch.bwd_weight(input, d_output, filter, *sizes), last)

    return here() if is_ours(ours, call, here, there) else there()


@_op(BIAS)
def bwd_bias(d_output: Tensor, ours: str) -> Tensor:
    """The gradient of a bias: sums over images and pixels."""
    call = _bwd_bias_call(d_output)

    def here() -> Tensor:
        return call.compute(d_output)

    def there() -> Tensor:
        return d_output.sum([0, *range(2, d_output.dim())])

    return here() if is_ours(ours, call, here, there) else there()


_RECORDED: ContextVar[list[Call] | None] = ContextVar("recorded", default=None)


@contextmanager
def recording() -> Iterator[list[Call]]:
    """Collect the calls that fake tensors would need a kernel of ours for."""
    calls: list[Call] = []
    token = _RECORDED.set(calls)
    try:
        yield calls
    finally:
        _RECORDED.reset(token)


def _record(call: Call, ours: str) -> None:
    calls = _RECORDED.get()
    if calls is not None and (ours == FASTEST or call.direction in ours.split(",")):
        calls.append(call)


@torch.library.register_fake(fwd)
def _(input: Tensor, weight: Tensor, bias: Tensor | None, *sizes: Any) -> Tensor:
    stride, pad, _, dilation, _, ours = sizes
    outs = _outs(input.shape[2:], weight.shape[2:], stride, pad, dilation)
    if _RECORDED.get() is not None:
        _record(_fwd_call(input, weight, *sizes[:-1]), ours)
    return empty(input, (input.shape[0], weight.shape[0], *outs), is_last(input))


@torch.library.register_fake(bwd_data)
def _(d_output: Tensor, weight: Tensor, image: Ints, last: bool, *sizes: Any) -> Tensor:
    *_spatial, groups, ours = sizes
    if _RECORDED.get() is not None:
        _record(_bwd_data_call(d_output, weight, image, last, *sizes[:-1]), ours)
    return empty(d_output, (d_output.shape[0], weight.shape[1] * groups, *image), last)


@torch.library.register_fake(bwd_weight)
def _(input: Tensor, d_output: Tensor, filter: Ints, last: bool, *sizes: Any) -> Tensor:
    *_spatial, groups, ours = sizes
    if _RECORDED.get() is not None:
        _record(_bwd_weight_call(input, d_output, filter, last, *sizes[:-1]), ours)
    return empty(input, (d_output.shape[1], input.shape[1] // groups, *filter), last)


@torch.library.register_fake(bwd_bias)
def _(d_output: Tensor, ours: str) -> Tensor:
    if _RECORDED.get() is not None:
        _record(_bwd_bias_call(d_output), ours)
    return d_output.new_empty(d_output.shape[1])
