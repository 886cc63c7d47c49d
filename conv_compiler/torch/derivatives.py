# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Autograd of the ops. The three directions are linear in both operands, so of each the other two
are the derivatives. The gradient of a bias is a sum, whose derivative is the same for every pixel.

With s the sizes, L = fwd(x, w), and <.,.> the sum of products:
<fwd(x, w), y> = <x, bwd_data(y, w)> = <w, bwd_weight(x, y)>.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from conv_compiler.torch.layouts import is_last
from conv_compiler.torch.ops import bwd_bias, bwd_data, bwd_weight, fwd

Gradients = tuple[Any, ...]


def _keep(ctx: Any, inputs: tuple[Any, ...], first_size: int) -> None:
    """Save both operands and the sizes, which are the arguments from `first_size` on."""
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.sizes, ctx.arguments = inputs[first_size:], len(inputs)


def _gradients(ctx: Any, *found: Tensor | None) -> Gradients:
    return (*found, *[None] * (ctx.arguments - len(found)))


def _d_input(ctx: Any, y: Tensor, w: Tensor, x: Tensor) -> Tensor:
    """The gradient that lies as x does, of operands in the places of d_output and weight."""
    found: Tensor = bwd_data(y, w, x.shape[2:], is_last(x), *ctx.sizes)
    return found


def _d_weight(ctx: Any, x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """The gradient that lies as w does, of operands in the places of input and d_output."""
    found: Tensor = bwd_weight(x, y, w.shape[2:], is_last(w), *ctx.sizes)
    return found


def _fwd_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _keep(ctx, inputs, 3)


def _fwd_backward(ctx: Any, d_output: Tensor) -> Gradients:
    x, w = ctx.saved_tensors
    needs = ctx.needs_input_grad
    return _gradients(
        ctx,
        _d_input(ctx, d_output, w, x) if needs[0] else None,
        _d_weight(ctx, x, d_output, w) if needs[1] else None,
        bwd_bias(d_output, ctx.sizes[-1]) if needs[2] else None,
    )


def _bwd_data_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _keep(ctx, inputs, 4)


def _bwd_data_backward(ctx: Any, dd_input: Tensor) -> Gradients:
    y, w = ctx.saved_tensors
    needs = ctx.needs_input_grad
    return _gradients(
        ctx,
        fwd(dd_input, w, None, *ctx.sizes) if needs[0] else None,
        _d_weight(ctx, dd_input, y, w) if needs[1] else None,
    )


def _bwd_weight_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _keep(ctx, inputs, 4)


def _bwd_weight_backward(ctx: Any, dd_weight: Tensor) -> Gradients:
    x, y = ctx.saved_tensors
    needs = ctx.needs_input_grad
    return _gradients(
        ctx,
        _d_input(ctx, y, dd_weight, x) if needs[0] else None,
        fwd(x, dd_weight, None, *ctx.sizes) if needs[1] else None,
    )


def _bwd_bias_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.shape = inputs[0].shape


def _bwd_bias_backward(ctx: Any, dd_bias: Tensor) -> Gradients:
    ones = [1] * (len(ctx.shape) - 2)
    return dd_bias.view(1, -1, *ones).expand(ctx.shape), None


torch.library.register_autograd(bwd_bias, _bwd_bias_backward, setup_context=_bwd_bias_setup)
torch.library.register_autograd(fwd, _fwd_backward, setup_context=_fwd_setup)
torch.library.register_autograd(bwd_data, _bwd_data_backward, setup_context=_bwd_data_setup)
torch.library.register_autograd(bwd_weight, _bwd_weight_backward, setup_context=_bwd_weight_setup)
