# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that kernels with copies to LDS multiply by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Instruction(NamedTuple):
    """Who executes an instruction together, how many rows of sums it has, and the bytes of an
    element that it multiplies.

    `is_asynchronous` tells that products read LDS after the instruction behind them has started.
    `sums` is the type of the sums. With `along_k` both operands lie along gemm_k. `short_sums`
    tells that the instruction keeps fewer bits of a sum than the type has.
    """

    executor: str
    threads: int
    rows: int
    element_bytes: int
    is_asynchronous: bool
    sums: str = "f32"
    along_k: bool = False
    short_sums: bool = False

    def kernel(self, what: str) -> str:
        """The name of a kernel by it."""
        return f"{'wgmma' if self.is_asynchronous else 'mma_sync'}_{what}"

    @property
    def stages_behind(self) -> int:
        """Tiles after which a stage of LDS is free: products of the tile before may read theirs."""
        return 2 if self.is_asynchronous else 1


INSTRUCTIONS: Mapping[str, Instruction] = MappingProxyType(
    {
        # NVIDIA's PTX ISA, "wgmma.mma_async", "mma.m16n8k16" and "mma.m16n8k8".
        "wgmma": Instruction("wave group", 128, 64, 2, is_asynchronous=True),
        "wgmma.s8": Instruction(
            "wave group", 128, 64, 1, is_asynchronous=True, sums="i32", along_k=True
        ),
        "wgmma.f8": Instruction(
            "wave group", 128, 64, 1, is_asynchronous=True, along_k=True, short_sums=True
        ),
        "mma.sync": Instruction("wave", 32, 16, 2, is_asynchronous=False),
        "mma.sync.tf32": Instruction("wave", 32, 16, 4, is_asynchronous=False),
    }
)
