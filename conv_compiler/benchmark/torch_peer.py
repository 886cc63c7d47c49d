# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch on the same device: oneDNN on CPUs, cuDNN on NVIDIA's cards, MIOpen on AMD's."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from conv_compiler.benchmark.sides import CallSide
from conv_compiler.benchmark.torch_tensors import (
    check_problem,
    device_of,
    folded,
    is_last,
    to_array,
    to_tensor,
)
from conv_compiler.problem.pad_modes import ZEROS

if TYPE_CHECKING:
    from conv_compiler.benchmark.sides import Case
    from conv_compiler.problem.conv_problem import ConvProblem


def absent(device: str) -> str:
    """Why PyTorch is not there for a device, or nothing."""
    if find_spec("torch") is None:
        return "not installed; pip install 'conv-compiler[torch]'"
    base = device.partition("://")[0]
    if base == "cpu":
        return ""
    import torch

    built = "hip" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    if built != base:
        return f"built for {built}; install PyTorch for {base}"
    return "" if torch.cuda.is_available() else "finds no card"


def torch_side(case: Case) -> CallSide:
    """PyTorch's own gradient or convolution.

    A 1D problem is given as a 2D one of height 1, which is what PyTorch makes of it; asked in 1D it
    would copy tensors that have channels last. On a card cuDNN or MIOpen looks for its fastest
    kernel in the first call.
    """
    import torch

    problem = case.problem
    check_problem(problem)
    device = device_of(case.device)
    torch.backends.cudnn.benchmark = True
    flat = problem.ndim == 1
    first, second = _tensors(case, device)
    if flat:
        first, second = first.unsqueeze(2), second.unsqueeze(2)
    ones, zeros = ([one] if flat else [] for one in (1, 0))
    sizes = (
        [*ones, *problem.stride],
        [*zeros, *problem.pad_low],
        [*ones, *problem.dilation],
        problem.g,
    )
    input, weight = _of_backend(problem, first, second, len(sizes[0]))
    rest = (*sizes[:3], False, [0] * len(sizes[0]), problem.g)
    aten = torch.ops.aten
    if problem.direction == "fwd":

        def run() -> Any:
            return aten.convolution(input, weight, None, *rest)

    else:
        which = int(problem.direction == "bwd_weight")
        wanted = [number == which for number in range(3)]
        gradient = second if which else first

        def run() -> Any:
            return aten.convolution_backward(gradient, input, weight, None, *rest, wanted)[which]

    return CallSide(
        detail=str(torch._C._select_conv_backend(input, weight, None, *rest).name),
        call=_finished(run, device),
        to_numpy=lambda found: to_array(problem, found.squeeze(2) if flat else found),
    )


def through_side(case: Case) -> CallSide:
    """Our op of PyTorch's (`torch.ops.conv_compiler`) on the same tensors."""
    from conv_compiler.torch import ops

    problem = case.problem
    check_problem(problem)
    device = device_of(case.device)
    first, second = _tensors(case, device)
    sizes = (
        list(problem.stride),
        list(problem.pad_low),
        ZEROS,
        list(problem.dilation),
        problem.g,
        problem.direction,  # of which the kernel is ours
    )
    row = problem.layout_row
    data_last, weight_last = is_last(folded(row.input)), is_last(folded(row.weight))
    image, taps = list(problem.image), list(problem.filter)
    run: dict[str, Callable[[], Any]] = {
        "fwd": lambda: ops.fwd(first, second, None, *sizes),
        "bwd_data": lambda: ops.bwd_data(first, second, image, data_last, *sizes),
        "bwd_weight": lambda: ops.bwd_weight(first, second, taps, weight_last, *sizes),
    }
    return CallSide(
        detail=f"torch.ops.conv_compiler.{problem.direction}",
        call=_finished(run[problem.direction], device),
        to_numpy=lambda found: to_array(problem, found),
    )


def _of_backend(problem: ConvProblem, first: Any, second: Any, spatial: int) -> tuple[Any, Any]:
    """(input, weight): what PyTorch chooses its kernel by, in every direction.

    Of the one that is to be computed only shape and order are read. It is a whole tensor, as
    autograd has it: PyTorch would copy one that is none.
    """
    import torch

    operands = dict(zip(problem.tensors[:2], (first, second), strict=True))
    fill = (1,) * (spatial - problem.ndim)

    def tensor(which: str, shape: tuple[int, ...]) -> Any:
        if which in operands:
            return operands[which]
        last = is_last(folded(getattr(problem.layout_row, which)))
        formats = {2: torch.channels_last, 3: torch.channels_last_3d}
        form = formats[spatial] if last else torch.contiguous_format
        return torch.empty(shape, dtype=first.dtype, device=first.device, memory_format=form)

    return (
        tensor("input", (problem.n, problem.g * problem.c, *fill, *problem.image)),
        tensor("weight", (problem.g * problem.k, problem.c, *fill, *problem.filter)),
    )


def _tensors(case: Case, device: Any) -> list[Any]:
    names = case.problem.tensors[:2]
    return [
        to_tensor(case.problem, which, array, device)
        for which, array in zip(names, case.operands, strict=True)
    ]


def _finished(run: Callable[[], Any], device: Any) -> Callable[[], Any]:
    """A call that returns when the device is done."""
    import torch

    if device.type == "cpu":
        return run

    def call() -> Any:
        result = run()
        torch.cuda.synchronize(device)
        return result

    return call
