# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a CPU computes with: this host, or one row a CPU that can be compiled for by name.

A row's extensions are those of LLVM's model of the CPU (`llvm/lib/Target/X86/X86.td`,
`llvm/lib/Target/AArch64/AArch64Processors.td`) that LLVM makes instructions of out of plain code;
`conv-compiler list targets --check` compares them with what the compiler reports. The levels
x86-64-v2 to -v4 are those of the x86-64 psABI, chapter 3.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from conv_compiler.storage.fitted_costs import NOT_FITTED, FittedCosts, fitted_costs
from conv_compiler.targets.caches import CACHES, COMMON, Caches, host_caches
from conv_compiler.targets.host import (
    PAIR_INSTRUCTIONS,
    ROUNDING_INSTRUCTIONS,
    TILE_INSTRUCTIONS,
    PairInstruction,
    TileInstruction,
    VectorUnit,
    find_unit,
    host_architecture,
    host_cores,
    host_features,
    host_flags,
    host_unit,
    processor_name,
)

# Workgroups and parts of a named CPU are distributed to so many cores unless its target says
# another number: with four workgroups a core, 2 to 16 cores have whole rounds of work.
DEFAULT_CORES = 8


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A CPU that kernels are made for; tiles, instructions of pairs and splits follow from it.

    `name` is LLVM's, `architecture` as a target triple begins, `extensions` those that its code may
    use, as Linux names them, and `cores` how many workgroups and parts are dealt out for. `caches`
    are those of a core. `costs` are those that were fitted on this host; none are of a CPU by name.
    """

    name: str
    architecture: str
    unit: VectorUnit
    extensions: tuple[str, ...]
    cores: int = DEFAULT_CORES
    caches: Caches = COMMON
    costs: FittedCosts = NOT_FITTED

    def __post_init__(self) -> None:
        if len(set(self.extensions)) != len(self.extensions):
            raise ValueError(f"processor {self.name}: an extension stands twice")
        if self.cores < 1:
            raise ValueError(f"processor {self.name}: cores {self.cores} is not 1 or more")

    @property
    def flags(self) -> tuple[str, ...]:
        """iree-compile's flags, beside the CPU's name, for a CPU other than the host."""
        return (f"--iree-llvmcpu-target-triple={self.architecture}-unknown-linux-gnu",)

    def pair_instruction(self, dtype: str) -> PairInstruction | None:
        """The row of PAIR_INSTRUCTIONS that it has for a data type, or None."""
        rows = (row for row in PAIR_INSTRUCTIONS.values() if row.dtype == dtype)
        return next((row for row in rows if row.flag in self.extensions), None)

    def fast_pairs(self, dtype: str) -> PairInstruction | None:
        """That row where it multiplies faster than multiply-adds of f32 do, else None."""
        row = self.pair_instruction(dtype)
        return row if row and self.is_fast(row) else None

    def is_fast(self, row: PairInstruction) -> bool:
        """Whether an instruction multiplies faster than multiply-adds of f32 do."""
        return row.slow_beside not in self.extensions

    def rounding(self, dtype: str) -> str:
        """The instruction that it has to round f32 to a data type: a key of ROUNDING_INSTRUCTIONS,
        or empty."""
        rows = (row for row in ROUNDING_INSTRUCTIONS.values() if row.dtype == dtype)
        return next((row.name for row in rows if row.flag in self.extensions), "")

    def tile_instruction(self, dtype: str) -> TileInstruction | None:
        """The row of TILE_INSTRUCTIONS that it has for a data type, or None."""
        rows = (row for row in TILE_INSTRUCTIONS.values() if row.dtype == dtype)
        return next((row for row in rows if row.flag in self.extensions), None)


_V1 = ("sse2",)
_V2 = (*_V1, "pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "cx16")
_V3 = (*_V2, "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_SINCE_ICE_LAKE = (
    *("avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq", "avx512ifma", "avx512vbmi"),
    *("avx512_vbmi2", "gfni"),
)
_ZNVER3 = (*_V3, "sse4a")
_ZNVER4 = (*_V4, *_SINCE_ICE_LAKE, "avx512_bf16", "sse4a")
_ZNVER5 = (*_ZNVER4, "avx_vnni")
_SAPPHIRE_RAPIDS = (
    *(*_V4, *_SINCE_ICE_LAKE, "avx512_bf16", "avx512_fp16", "avx_vnni"),
    *("amx_tile", "amx_bf16", "amx_int8"),
)


# Armv8.2 with what the CPUs have of it; our vectors are those of Advanced SIMD.
_NEOVERSE_N1 = ("asimd", "asimddp", "asimdhp", "atomics", "asimdrdm")
_NEOVERSE_V1 = (*_NEOVERSE_N1, "bf16", "fcma", "asimdfhm", "i8mm", "jscvt", "sve")

_NEOVERSE_V2 = (*_NEOVERSE_V1, "sve2")


def _x86(name: str, unit: str, extensions: tuple[str, ...]) -> Processor:
    return Processor(
        name=name,
        architecture="x86_64",
        unit=find_unit(unit),
        extensions=extensions,
        caches=CACHES.get(name, COMMON),
    )


def _arm(name: str, extensions: tuple[str, ...]) -> Processor:
    return Processor(
        name=name,
        architecture="aarch64",
        unit=find_unit("ASIMD"),
        extensions=extensions,
        caches=CACHES[name],
    )


PROCESSORS = MappingProxyType(
    {
        row.name: row
        for row in (
            _x86("x86-64", "X86_V2", _V1),  # SSE2 has the registers of SSE4.2
            _x86("x86-64-v2", "X86_V2", _V2),
            _x86("x86-64-v3", "X86_V3", _V3),
            _x86("x86-64-v4", "X86_V4", _V4),
            _x86("znver3", "X86_V3", _ZNVER3),
            _x86("znver4", "X86_V4", _ZNVER4),
            _x86("znver5", "X86_V4", _ZNVER5),
            _x86("sapphirerapids", "X86_V4", _SAPPHIRE_RAPIDS),
            _arm("neoverse-n1", _NEOVERSE_N1),
            _arm("neoverse-v1", _NEOVERSE_V1),
            _arm("neoverse-v2", _NEOVERSE_V2),
        )
    }
)


def host_processor() -> Processor:
    """This host, and the cores that this process may run on."""
    return Processor(
        name="host",
        architecture=host_architecture(),
        unit=host_unit(),
        extensions=tuple(sorted(host_flags())),
        cores=host_cores(),
        caches=host_caches(),
        costs=fitted_costs(host_kind()),
    )


def host_kind() -> str:
    """What a fit of this host holds for: processors of that name with those extensions."""
    return f"{processor_name()} {host_features()}"
