# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A problem's arrays as tensors of PyTorch that lie as the problem's layout says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conv_compiler.benchmark.sides import PeerRefused

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import Array
    from conv_compiler.problem.conv_problem import ConvProblem

_DTYPES = ("f32", "f16", "bf16", "f64")


def check_problem(problem: ConvProblem) -> None:
    """Raise PeerRefused for what a convolution of PyTorch cannot state."""
    row = problem.layout_row
    wrong = {
        f"dtype {problem.dtype}": problem.dtype not in _DTYPES,
        f"result {problem.weight_dtype}": problem.weight_dtype != problem.dtype,
        "pads that differ": problem.pad_low != problem.pad_high,
        f"layout {problem.layout}": problem.g > 1 and row.input.startswith("G"),
        "ops on tensors": bool(problem.elementwise) or problem.operand_ops != (None, None),
        f"compute {problem.compute}": bool(problem.compute),
        f"pads that are {problem.pad_mode}": bool(problem.pad_mode),
        "block scales": bool(problem.block_scales),
        "a dynamic batch": problem.dynamic_batch,
        "the largest value beside a result": problem.amax,
    }
    if found := [what for what, is_so in wrong.items() if is_so]:
        raise PeerRefused(f"torch: has no call for {found[0]}; leave torch out")


def is_last(letters: str) -> bool:
    """Whether a tensor has its input channels (of an output its channels) last."""
    return not letters.endswith("*")


def folded(letters: str) -> str:
    """The letters without G: the group is part of the channels, or alone and of one element."""
    return letters.replace("G", "")


def to_tensor(problem: ConvProblem, which: str, array: Array, device: Any) -> Any:
    """The array of `input`, `weight` or `output` as a tensor with PyTorch's axes, on a device.

    On the CPU it is not copied.
    """
    import numpy as np
    import torch

    letters = folded(getattr(problem.layout_row, which))
    shape = problem.shape(letters)
    flat = np.ascontiguousarray(array).reshape(shape)
    if problem.dtype == "bf16":
        tensor = torch.from_numpy(flat.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(flat)
    tensor = tensor.to(device)
    return tensor.movedim(-1, 1) if is_last(letters) else tensor


def to_array(problem: ConvProblem, tensor: Any) -> Array:
    """The result's tensor as an array in the problem's shape."""
    import numpy as np
    import torch

    which = problem.tensors[2]
    letters = folded(getattr(problem.layout_row, which))
    tensor = (tensor.movedim(1, -1) if is_last(letters) else tensor).contiguous().cpu()
    if problem.dtype == "bf16":
        flat = tensor.view(torch.int16).numpy().view(problem.result_type.to_numpy())
    else:
        flat = tensor.numpy()
    return np.asarray(flat).reshape(problem.result_shape)


def device_of(name: str) -> Any:
    """PyTorch's device of one of ours; a card of AMD is `cuda` there too."""
    import torch

    base, _, number = name.partition("://")
    return torch.device("cpu") if base == "cpu" else torch.device("cuda", int(number or 0))
