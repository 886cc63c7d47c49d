# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors on a card for kernels that `tools/fit/warp_groups.py` checks and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


def tensors_of(problem: ConvProblem, seed: int) -> Any:
    """Operands of whole numbers and a result on the card, and the right result."""
    import torch

    direction = problem.direction
    torch.manual_seed(seed)
    image, gradient, weight = (
        torch.randint(-2, 3, shape, device="cuda").half()
        for shape in (problem.input_shape, problem.output_shape, problem.weight_shape)
    )
    numbers = (problem.stride, problem.pad_low, problem.dilation)
    filters = (problem.g * problem.k, *problem.filter, problem.c)
    as_torch = [
        one.reshape(shape).permute(0, 3, 1, 2).float()
        for one, shape in (
            (gradient, problem.output_shape),
            (image, problem.input_shape),
            (weight, filters),
        )
    ]
    if direction == "fwd":
        found = torch.nn.functional.conv2d(as_torch[1], as_torch[2], None, *numbers, problem.g)
        tensors = {"source": image, "weight": weight, "result": gradient}
    else:
        mask = [direction == "bwd_data", direction == "bwd_weight", False]
        several = torch.ops.aten.convolution_backward(
            *as_torch, None, *numbers, False, [0, 0], problem.g, mask
        )
        found = several[mask.index(True)]
        tensors = {"source": gradient, "weight": weight, "result": image}
        if direction == "bwd_weight":
            tensors = {"gradient": gradient, "image": image, "result": weight}
    shape = tensors["result"].shape
    tensors["result"] = torch.empty_like(tensors["result"])
    # What cuDNN computes by transforms is a little off.
    return tensors, found.round().permute(0, 2, 3, 1).reshape(shape).half()
