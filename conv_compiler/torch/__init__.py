# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions for PyTorch whose gradients are computed by kernels of this package.

`conv1d`, `conv2d`, `conv3d` and their transposes take what those of `torch.nn.functional` take;
`Conv2d` and its kin are modules; `replace` puts them into a model. Which of a layer's three
directions are computed here is the argument `ours`: by default the weight gradient, and PyTorch
computes the others.
"""

from conv_compiler.torch.functional import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from conv_compiler.torch.modules import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    replace,
)
from conv_compiler.torch.warm_up import warm_up

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "replace",
    "warm_up",
]
