# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of a direction of a layer: found by what decides it, compiled at its first use."""

from __future__ import annotations

import atexit
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

from conv_compiler.errors import UnsupportedProblem, UnsupportedTarget
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import BIAS
from conv_compiler.targets import TARGETS
from conv_compiler.torch.layouts import as_it_lies, as_named, layout

DTYPES = MappingProxyType(
    {
        torch.float32: "f32",
        torch.float16: "f16",
        torch.bfloat16: "bf16",
        torch.float64: "f64",
    }
)
Sizes = tuple[int, ...]


class Call(NamedTuple):
    """What decides a kernel. `n` to `dilation` are the fields of ConvProblem; images and weight lie
    with channels last or as PyTorch names the axes."""

    direction: str
    device: torch.device
    dtype: torch.dtype
    data_last: bool
    weight_last: bool
    n: int
    g: int
    k: int
    c: int
    image: Sizes
    filter: Sizes
    stride: Sizes
    pad: Sizes
    pad_mode: str
    dilation: Sizes

    def problem(self) -> ConvProblem:
        """The problem; UnsupportedProblem for a type that has no kernel or a size that is none."""
        if self.dtype not in DTYPES:
            known = ", ".join(_name(dtype) for dtype in DTYPES)
            raise UnsupportedProblem(
                f"dtype {_name(self.dtype)}: has no kernel; use {known}, or leave "
                f"{self.direction} to PyTorch"
            )
        dtype = DTYPES[self.dtype]
        return ConvProblem(
            direction=self.direction,
            n=self.n,
            g=self.g,
            k=self.k,
            c=self.c,
            image=self.image,
            filter=self.filter,
            stride=self.stride,
            pad_low=self.pad,
            pad_mode=self.pad_mode,
            dilation=self.dilation,
            layout=layout(self.data_last, self.weight_last, len(self.image)),
            dtype=dtype,
            weight_dtype=dtype,
            result_operand=self.device.type != "cpu",
        )

    @property
    def result_last(self) -> bool:
        """Whether the result's channels lie last; a bias has no other axis."""
        if self.direction == BIAS:
            return False
        return self.weight_last if self.direction == "bwd_weight" else self.data_last

    def compute(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The result of the operands, in the order of the direction's kernel."""
        second_last = self.data_last if self.direction == "bwd_weight" else self.weight_last
        kernel = kernel_of(self)
        operands = [
            as_it_lies(tensor.detach(), last)
            for tensor, last in zip(tensors, (self.data_last, second_last), strict=False)
        ]
        first = tensors[0]
        if self.device.type == "cpu":
            result = _as_tensor(kernel(*map(_as_array, operands)), self.dtype)
        else:
            result = first.new_empty(kernel.result.shape)
            torch.cuda.current_stream(self.device).synchronize()
            kernel(*map(Ready, operands), out=Ready(result))
        return as_named(result, self.result_last)


class Ready:
    """A dense tensor of a card for `__dlpack__` whose work is done: no stream waits for another.

    PyTorch's own `__dlpack__` records an event and has a stream wait for it, at each call.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **_asked: Any) -> Any:
        return torch.utils.dlpack.to_dlpack(self.tensor)

    def contiguous(self) -> torch.Tensor:
        """The tensor, for one that IREE does not take as it lies."""
        return self.tensor.contiguous()


def _as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A dense tensor of the CPU as a numpy array in the same memory; by DLPack it takes longer."""
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _as_tensor(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """The same the other way."""
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(dtype)
    return torch.from_numpy(array)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def target_of(device: torch.device) -> tuple[str, str]:
    """(target, name of the device) of a device of PyTorch; UnsupportedTarget where there is none.

    An NVIDIA card runs the code of the newest chip in the table that is no newer than the card.
    """
    if device.type == "cpu":
        return "cpu", "cpu"
    if device.type != "cuda":
        raise UnsupportedTarget(f"device {device}: has no kernels; use cpu or cuda")
    if torch.version.hip:
        chip = torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0]
        return chip, f"hip://{device.index}"
    major, minor = torch.cuda.get_device_capability(device)
    chips = [row.chip for row in TARGETS.values() if row.backend == "cuda"]
    fitting = [chip for chip in chips if _runs(10 * major + minor, chip)]
    if not fitting:
        oldest = min(chips, key=_number)
        raise UnsupportedTarget(f"device {device}: older than {oldest}; use cpu")
    return max(fitting, key=_number), f"cuda://{device.index}"


def _runs(capability: int, chip: str) -> bool:
    """Whether a card runs a chip's code: that of older ones, and of its own with an `a` alone."""
    return _number(chip) == capability if chip.endswith("a") else _number(chip) <= capability


def _number(chip: str) -> int:
    """The compute capability of a chip, times ten: 90 of sm_90a."""
    return int(chip.removeprefix("sm_").rstrip("a"))


@cache
def kernel_of(call: Call) -> Any:
    """The loaded kernel of a call."""
    # Not at the top: PyTorch never lets go of its ops, so what their globals reach outlives the
    # interpreter, and IREE's bindings report each object that does.
    from conv_compiler.compiler.compile import compile
    from conv_compiler.runtime.kernel import load

    target, device = target_of(call.device)
    return load(compile(call.problem(), target), device)


atexit.register(kernel_of.cache_clear)
