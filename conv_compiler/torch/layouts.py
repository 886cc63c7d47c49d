# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors lie in memory: PyTorch's axes are always N C space, its strides say the order.

A tensor is `last` where its channels are the last axis in memory (`torch.channels_last` and its kin
of one and three dimensions), else its axes lie as they are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import torch

from conv_compiler.problem.layouts import Layout

# PyTorch's name of the order with channels last, by the number of axes.
_FORMATS = MappingProxyType({4: torch.channels_last, 5: torch.channels_last_3d})


def is_last(tensor: torch.Tensor) -> bool:
    """Whether channels lie last; not where the order of the axes makes no difference."""
    return not tensor.is_contiguous() and _lies_last(tensor)


def _lies_last(tensor: torch.Tensor) -> bool:
    if form := _FORMATS.get(tensor.dim()):  # without a view, which takes 5 us
        return tensor.is_contiguous(memory_format=form)
    return tensor.movedim(1, -1).is_contiguous()


def dense(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    """The tensor in this order; itself where it lies so."""
    if last:
        if _lies_last(tensor):
            return tensor
        return tensor.movedim(1, -1).contiguous().movedim(-1, 1)
    return tensor.contiguous()


def as_it_lies(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    """The tensor in this order, its axes in the order of memory; a view where it lies so."""
    return (tensor.movedim(1, -1) if last else tensor).contiguous()


def as_named(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    """A view with PyTorch's axes of one with the axes in the order of memory."""
    return tensor.movedim(-1, 1) if last else tensor


def empty(like: torch.Tensor, shape: Sequence[int], last: bool) -> torch.Tensor:
    """An unwritten tensor of a shape in PyTorch's axes, in this order."""
    if not last:
        return like.new_empty(shape)
    return like.new_empty((shape[0], *shape[2:], shape[1])).movedim(-1, 1)


def layout(data_last: bool, weight_last: bool, ndim: int) -> str:
    """The name of the layout of images and weight in these orders."""
    data = "N*C" if data_last else "NC*"
    row = Layout(input=data, weight="K*C" if weight_last else "KC*", output=data.replace("C", "K"))
    return row.spell(ndim)
