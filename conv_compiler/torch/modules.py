# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules in place of `torch.nn.Conv2d` and its kin, and the function that puts them into a model.

A module has the parameters, the state and the arguments of PyTorch's, and `ours`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from torch import Tensor, nn

from conv_compiler.torch.choice import DEFAULT, spelled
from conv_compiler.torch.functional import Ours, conv, conv_transpose


class _Ours:
    """A module of PyTorch's that also says which of its directions are ours."""

    ours: str = spelled(DEFAULT)

    def __init__(self, *args: Any, ours: Ours = DEFAULT, **settings: Any) -> None:
        word = spelled(ours)
        super().__init__(*args, **settings)
        self.ours = word


class _Conv(_Ours):
    """A convolution of PyTorch's with another forward pass."""

    def _conv_forward(self: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What PyTorch's `forward` calls."""
        sizes = (self.stride, self.padding, self.dilation, self.groups)
        ndim = len(self.kernel_size)
        return conv(ndim, input, weight, bias, *sizes, self.ours, self.padding_mode)


class _ConvTranspose(_Ours):
    """A transposed convolution of PyTorch's with another forward pass."""

    def forward(self: Any, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The output; with `output_size` as PyTorch's module has it."""
        ndim = len(self.kernel_size)
        more = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, ndim, self.dilation
        )
        sizes = (self.stride, self.padding, more, self.groups, self.dilation)
        return conv_transpose(ndim, input, self.weight, self.bias, *sizes, self.ours)


class Conv1d(_Conv, nn.Conv1d):
    """`torch.nn.Conv1d`; see `conv_compiler.torch.conv2d` for `ours`."""


class Conv2d(_Conv, nn.Conv2d):
    """`torch.nn.Conv2d`; see `conv_compiler.torch.conv2d` for `ours`."""


class Conv3d(_Conv, nn.Conv3d):
    """`torch.nn.Conv3d`; see `conv_compiler.torch.conv2d` for `ours`."""


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d):
    """`torch.nn.ConvTranspose1d`; see `conv_compiler.torch.conv2d` for `ours`."""


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d):
    """`torch.nn.ConvTranspose2d`; see `conv_compiler.torch.conv2d` for `ours`."""


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d):
    """`torch.nn.ConvTranspose3d`; see `conv_compiler.torch.conv2d` for `ours`."""


_OURS = (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
# PyTorch's own class -> the one in its place. A class that derives from PyTorch's may compute
# something else, so it is left alone.
_IN_PLACE_OF = {kind.__bases__[1]: kind for kind in _OURS}


def replace(
    model: nn.Module,
    *,
    only: Collection[str] | Callable[[str, nn.Module], bool] | None = None,
    ours: Ours = DEFAULT,
) -> nn.Module:
    """Make the convolutions of a model ours, in place.

    Parameters, buffers, hooks and names stay as they are.

    Args:
        model: The model, or a convolution itself.
        only: Names of modules (those of `model.named_modules()`), or a function of name and module;
            all convolutions by default.
        ours: As in `conv2d`.

    Returns:
        The model.

    Raises:
        UnsupportedProblem: A direction in `ours` that there is not.
        KeyError: A name in `only` that is no convolution of the model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
        >>> conv_compiler.torch.replace(model)
        Sequential(
          (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
          (1): ReLU()
        )
    """
    word = spelled(ours)
    found = {name: one for name, one in model.named_modules() if type(one) in _IN_PLACE_OF}
    if callable(only):
        found = {name: one for name, one in found.items() if only(name, one)}
    elif only is not None:
        found = {name: found[name] for name in only}
    for one in found.values():
        one.__class__ = _IN_PLACE_OF[type(one)]
        one.ours = word
    return model
