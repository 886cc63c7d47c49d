# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this host computes with: vectors, one row an extension, and cores.

Sizes are those of Intel's Software Developer's Manual (volume 1, chapters 13 to 15) and of the Arm
Architecture Reference Manual (A1.4); which one this host has is what numpy found at its import.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class VectorUnit:
    """A vector extension.

    `feature` is numpy's name for it, `lanes` the f32 elements of a register, `registers` how many
    there are, `spare` those that neither sums nor held operands may take: addresses' vectors, and a
    broadcast element where multiply-adds cannot broadcast an operand from memory themselves.
    """

    feature: str
    lanes: int
    registers: int
    spare: int

    @property
    def most_vectors(self) -> int:
        """Registers for sums and held operands."""
        return self.registers - self.spare

    @property
    def most_sums(self) -> int:
        """Registers for sums: three quarters, so that operands find room beside them."""
        return self.registers * 3 // 4


# The widest first; the last one is taken where the host has none of them.
VECTOR_UNITS = (
    VectorUnit(feature="X86_V4", lanes=16, registers=32, spare=4),
    VectorUnit(feature="X86_V3", lanes=8, registers=16, spare=1),
    VectorUnit(feature="ASIMD", lanes=4, registers=32, spare=4),
    VectorUnit(feature="X86_V2", lanes=4, registers=16, spare=2),
)


def find_unit(feature: str) -> VectorUnit:
    """The row of VECTOR_UNITS of numpy's name."""
    return next(row for row in VECTOR_UNITS if row.feature == feature)


@dataclass(frozen=True, kw_only=True)
class PairInstruction:
    """An instruction that adds two products of neighbouring elements of 16 bits to every sum.

    `flag` is Linux's name for the extension, `dtype` the data it is used for, `element` the type it
    multiplies, `intrinsic` LLVM's name of it, the register's bits left open. CPUs that have the
    extension `slow_beside` too multiply f32 as fast (measured, docs/benchmarks.md).
    """

    name: str
    flag: str
    dtype: str
    element: str
    intrinsic: str
    slow_beside: str = ""


# Intel's Software Developer's Manual, volume 2C.
PAIR_INSTRUCTIONS = MappingProxyType(
    {
        row.name: row
        for row in (
            PairInstruction(
                name="vdpbf16ps",
                flag="avx512_bf16",
                dtype="bf16",
                element="bf16",
                intrinsic="llvm.x86.avx512bf16.dpbf16ps.{bits}",
                slow_beside="amx_bf16",
            ),
            PairInstruction(
                name="vpdpwssd",
                flag="avx512_vnni",
                dtype="i8",
                element="i16",
                intrinsic="llvm.x86.avx512.vpdpwssd.{bits}",
            ),
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class RoundingInstruction:
    """An instruction that rounds a register of f32 to a narrower type.

    `flag` is Linux's name for the extension, `dtype` the narrower type, `intrinsic` LLVM's name of
    it, the register's bits left open, and `bits` those of the registers that it takes.
    """

    name: str
    flag: str
    dtype: str
    intrinsic: str
    bits: tuple[int, ...]


# Intel's Software Developer's Manual, volume 2C. LLVM has none of 128 bits without a mask.
ROUNDING_INSTRUCTIONS = MappingProxyType(
    {
        row.name: row
        for row in (
            RoundingInstruction(
                name="vcvtneps2bf16",
                flag="avx512_bf16",
                dtype="bf16",
                intrinsic="llvm.x86.avx512bf16.cvtneps2bf16.{bits}",
                bits=(256, 512),
            ),
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class TileInstruction:
    """An instruction that multiplies two tiles of registers and adds to a third one's sums.

    A tile is TILE_ROWS rows of 64 bytes. `products` neighbours along gemm_k stand in 32 bits, and
    up to TILE_ROWS such groups are summed at once. `flag` is Linux's name for the extension,
    `dtype` the data it is used for, `element` the type it multiplies.
    """

    name: str
    flag: str
    dtype: str
    element: str
    products: int

    def depth(self, channels: int) -> int:
        """Groups of neighbours that an instruction sums: as many as divide those of channels."""
        groups = channels // self.products
        return max(one for one in range(1, TILE_ROWS + 1) if groups % one == 0)


# Palette 1 of AMX: eight tiles of 1 KiB. Intel's Software Developer's Manual, volume 1, chapter 18.
TILE_REGISTERS, TILE_ROWS = 8, 16
# What a kernel may take of a worker's stack: IREE's have 131072 bytes (`task_worker_stack_size`).
STACK_BYTES = 104 * 2**10
TILE_INSTRUCTIONS = MappingProxyType(
    {
        row.name: row
        for row in (
            TileInstruction(
                name="tdpbf16ps",
                flag="amx_bf16",
                dtype="bf16",
                element="bf16",
                products=2,
            ),
            TileInstruction(
                name="tdpbssd",
                flag="amx_int8",
                dtype="i8",
                element="i8",
                products=4,
            ),
        )
    }
)


@lru_cache(maxsize=1)
def host_flags() -> frozenset[str]:
    """The extensions of this host's processor as Linux names them; none on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    # "Features" on Arm.
    line = next((x for x in text.splitlines() if x.startswith(("flags", "Features"))), "")
    return frozenset(line.partition(":")[2].split())


@lru_cache(maxsize=1)
def host_unit() -> VectorUnit:
    """The vector unit of this host."""
    import numpy as np

    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    features = {*extensions["baseline"], *extensions["found"]}
    found = (row for row in VECTOR_UNITS if row.feature in features)
    return next(found, VECTOR_UNITS[-1])


def host_architecture() -> str:
    """This host's architecture as a target triple begins: x86_64, aarch64, ..."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def host_cores() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def host_features() -> str:
    """What tells this kind of processor from others: its extensions, as Linux lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def processor_name() -> str:
    """What this host's processor is called."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    named = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()
