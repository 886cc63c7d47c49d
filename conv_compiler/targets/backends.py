# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each family of targets is compiled for and run."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from conv_compiler.problem.directions import ALIGNMENT


@dataclass(frozen=True, kw_only=True)
class Backend:
    """How a family of targets is compiled for and run.

    `{chip}` stands for the row's chip in `flags`; `driver` is the runtime's name for it; `assembly`
    is the suffix of the dumped machine-code text; `object` that of the code object. `unmodelled`
    says why the performance model has no times of its kernels; it is empty where it has. Kernels
    take operands at multiples of `alignment` bytes, and of their elements. With `reads_slices` they
    read slices of larger tensors where they lie.
    """

    flags: tuple[str, ...]
    driver: str
    assembly: str
    object: str
    unmodelled: str = ""
    alignment: int = ALIGNMENT
    reads_slices: bool = False


BACKENDS = MappingProxyType(
    {
        "llvm-cpu": Backend(
            flags=(
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                "--iree-llvmcpu-target-cpu={chip}",
                # By default IREE 3.13 makes f32 of f64, and crashes on our payload as it does.
                "--iree-input-demote-f64-to-f32=false",
                "--iree-stream-resource-min-offset-alignment=4",
            ),
            alignment=4,
            reads_slices=True,
            driver="local-task",
            assembly="s",
            object="o",
            unmodelled="it is no GPU",
        ),
        "rocm": Backend(
            flags=("--iree-hal-target-device=hip", "--iree-rocm-target={chip}"),
            driver="hip",
            assembly="rocmasm",
            object="hsaco",
        ),
        "cuda": Backend(
            flags=("--iree-hal-target-device=cuda", "--iree-cuda-target={chip}"),
            driver="cuda",
            assembly="ptx",
            object="ptx",
            unmodelled="its kernels are PTX, which the driver compiles again",
        ),
    }
)
