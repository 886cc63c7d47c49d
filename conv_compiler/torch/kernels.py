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
from conv_compiler.runtime.dlpack_capsule import ALIGNMENT
from conv_compiler.targets import TARGETS
from conv_compiler.torch.layouts import as_it_lies, as_named, dense, layout

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
        kernel, lasts = kernel_of(self), (self.data_last, second_last)
        if self.device.type == "cpu":
            operands = [
                as_it_lies(tensor.detach(), last)
                for tensor, last in zip(tensors, lasts, strict=False)
            ]
            result = _as_tensor(kernel(*map(_as_array, operands)), self.dtype)
            return as_named(result, self.result_last)
        placed = [*map(dense, tensors, lasts)]
        result = tensors[0].new_empty_strided(*_lies(kernel.result.shape, self.result_last))
        self._run_on_card(kernel, placed, result)
        return result

    def _run_on_card(self, kernel: Any, operands: list[torch.Tensor], result: torch.Tensor) -> None:
        """Run on tensors that lie as the kernel wants them."""
        addresses = [tensor.data_ptr() for tensor in (*operands, result)]
        if any(address % ALIGNMENT for address in addresses):  # slices of larger tensors
            operands = [tensor.clone() for tensor in operands]
            addresses = [tensor.data_ptr() for tensor in (*operands, result)]
        _current_stream(self.device).synchronize()
        if result.numel() and all(tensor.numel() for tensor in operands):
            kernel.run_at(*addresses)
        else:
            result.zero_()


_STREAMS: dict[tuple[torch.device, int], torch.cuda.Stream] = {}


def _current_stream(device: torch.device) -> torch.cuda.Stream:
    """PyTorch's current stream of a card; `torch.cuda.current_stream` makes an object each time,
    which takes longer than to wait for an idle stream."""
    key = device, torch._C._cuda_getCurrentRawStream(device.index)
    if key not in _STREAMS:
        _STREAMS[key] = torch.cuda.current_stream(device)
    return _STREAMS[key]


@cache
def _lies(shape: Sizes, last: bool) -> tuple[Sizes, Sizes]:
    """Sizes and strides, in PyTorch's axes, of a dense tensor with a shape in memory."""
    named = as_named(torch.empty(shape, device="meta"), last)
    return tuple(named.shape), named.stride()


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
