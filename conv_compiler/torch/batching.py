# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.vmap` of the ops: a mapped axis becomes part of the batch, or of the groups.

Where only images are mapped, each element is more images. Where weights are mapped too, or are what
is computed, each element is groups of its own; groups are the outer part of the channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from conv_compiler.torch.ops import bwd_bias, bwd_data, bwd_weight, fwd


def _as_images(tensor: Tensor, dim: int) -> Tensor:
    """[mapped, N, C, ...] as [mapped * N, C, ...]."""
    return tensor.movedim(dim, 0).flatten(0, 1)


def _as_channels(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """Images as [N, mapped * C, ...]; repeated where they are not mapped."""
    if dim is None:
        tensor = tensor.unsqueeze(1)
        tensor = tensor.expand(-1, size, *tensor.shape[2:])
    else:
        tensor = tensor.movedim(dim, 1)
    return tensor.flatten(1, 2)


def _as_outer(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """A weight or a bias as [mapped * K, ...]; repeated where it is not mapped."""
    tensor = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return tensor.flatten(0, 1)


def _grouped(sizes: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """The sizes with groups for each element."""
    *spatial, groups, ours = sizes
    return (*spatial, groups * size, ours)


def _fwd(info: Any, dims: Any, x: Tensor, w: Tensor, bias: Tensor | None, *sizes: Any) -> Any:
    size = info.batch_size
    if dims[1] is None and dims[2] is None:
        return fwd(_as_images(x, dims[0]), w, bias, *sizes).unflatten(0, (size, -1)), 0
    x, w = _as_channels(x, dims[0], size), _as_outer(w, dims[1], size)
    bias = None if bias is None else _as_outer(bias, dims[2], size)
    return fwd(x, w, bias, *_grouped(sizes, size)).unflatten(1, (size, -1)), 1


def _bwd_data(
    info: Any, dims: Any, y: Tensor, w: Tensor, image: Any, last: bool, *sizes: Any
) -> Any:
    size = info.batch_size
    if dims[1] is None:
        return bwd_data(_as_images(y, dims[0]), w, image, last, *sizes).unflatten(0, (size, -1)), 0
    y, w = _as_channels(y, dims[0], size), _as_outer(w, dims[1], size)
    return bwd_data(y, w, image, last, *_grouped(sizes, size)).unflatten(1, (size, -1)), 1


def _bwd_weight(
    info: Any, dims: Any, x: Tensor, y: Tensor, filter: Any, last: bool, *sizes: Any
) -> Any:
    size = info.batch_size
    x, y = _as_channels(x, dims[0], size), _as_channels(y, dims[1], size)
    found = bwd_weight(x, y, filter, last, *_grouped(sizes, size))
    return found.unflatten(0, (size, -1)), 0


def _bwd_bias(info: Any, dims: Any, y: Tensor, ours: str) -> Any:
    size = info.batch_size
    found = bwd_bias(_as_channels(y, dims[0], size), ours)
    return found.unflatten(0, (size, -1)), 0


torch.library.register_vmap(bwd_bias, _bwd_bias)
torch.library.register_vmap(fwd, _fwd)
torch.library.register_vmap(bwd_data, _bwd_data)
torch.library.register_vmap(bwd_weight, _bwd_weight)
