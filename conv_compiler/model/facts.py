"""What the model knows of each chip's pipes: one row a chip, with where each number is from.

Marks in the comments: D a vendor's document or LLVM's source, M measured by others, C computed from
those, R general knowledge that no source was read for, U unknown and assumed.

- D: AMD "CDNA3 ISA", ROCm Compute Profiler "Pipeline descriptions" and "L2 cache"; LLVM
  `AMDGPUBaseInfo.cpp` (registers, waves and workgroups a unit) and `SISchedule.td`; IREE
  `KnownTargets.cpp`; ROCm GPU specification pages.
- M: github.com/tingqli/pyhip `docs/mem_latency.md`, `docs/mfma-valu-coissue.md` and its note on
  bank conflicts (MI308X); HipKittens' phase experiments (gfx950).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from conv_compiler.errors import UnsupportedTarget
from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class ChipFacts:
    """One chip, per unit that a workgroup occupies: a CU, on RDNA a WGP.

    Cycles are the unit's. `lds_read_cycles` and `lds_write_cycles` tell how long one
    wave-instruction without conflicts keeps the unit's LDS, by bytes a lane moves. Bandwidths are
    None where nothing is known; the model then leaves that pipe out.
    """

    units: int
    simds: int
    waves_per_simd: int
    workgroups: int
    vgprs_per_simd: int
    vgpr_granule: int
    lds_bytes: int
    valu_cycles: int  # a SIMD's vector unit is held by one wave-instruction
    matrix_beside_valu: bool
    scalar_cycles: int
    lds_read_cycles: Mapping[int, float]
    lds_write_cycles: Mapping[int, float]
    memory_bytes_per_cycle: float  # between a unit and the caches
    l2_bytes_per_cycle: float | None  # the whole chip
    l2_parts: int  # dies with an L2 of their own
    last_level_gb_per_s: float | None
    last_level_bytes: int  # what one kernel writes and the next reads stays there if it fits
    load_cycles: float  # latency of a load that misses
    lds_latency_cycles: float
    launch_seconds: float


# M: conflict-free ds_read_b32 4 cycles and b128 16 on one of a CU's two ports (D: both may issue),
# so half of that a CU; b64 between (C). D: stores take 8 (4 bytes) and 20 (16 bytes) a port;
# 8 bytes between (C).
_GFX9_READ = MappingProxyType({4: 2.0, 8: 4.0, 16: 8.0})
_GFX9_WRITE = MappingProxyType({4: 4.0, 8: 6.0, 16: 10.0})
# M: the conflict groups of 8- and 16-byte reads double on gfx950; 4-byte ones are assumed not to.
_GFX950_READ = MappingProxyType({4: 2.0, 8: 2.0, 16: 4.0})
# R: 128 bytes a clock for each half of a WGP, reads and writes alike; no source was found.
_RDNA_LDS = MappingProxyType({4: 0.5, 8: 1.0, 16: 2.0})

_MIB = 2**20
# U: what a dispatch costs beyond its work, within a graph of dispatches; an order of magnitude.
_LAUNCH_SECONDS = 2e-6


def _cdna(
    *,
    units: int,
    dies: int,
    lds_bytes: int,
    lds_read_cycles: Mapping[int, float],
    last_level_gb_per_s: float | None,
    last_level_bytes: int,
    l2_channels: int,
) -> ChipFacts:
    return ChipFacts(
        units=units,
        simds=4,  # D
        waves_per_simd=8,  # D
        workgroups=16,  # D: barrier slots
        vgprs_per_simd=512,  # D: with accumulation registers
        vgpr_granule=8,  # D
        lds_bytes=lds_bytes,  # D
        valu_cycles=4,  # D: 16 lanes a cycle, 64 a wave
        matrix_beside_valu=True,  # D; M: three vector instructions hide under one of 16 cycles
        scalar_cycles=4,  # D: each SIMD issues every fourth cycle
        lds_read_cycles=lds_read_cycles,
        lds_write_cycles=_GFX9_WRITE,
        memory_bytes_per_cycle=64,  # R: the vector L1
        l2_bytes_per_cycle=128 * l2_channels,  # D: channels; R: 128 bytes each
        l2_parts=dies,
        last_level_gb_per_s=last_level_gb_per_s,
        last_level_bytes=last_level_bytes,
        load_cycles=800,  # M: 500 to 800
        lds_latency_cycles=64,  # M: 50 to 64
        launch_seconds=_LAUNCH_SECONDS,
    )


def _rdna(*, units: int, last_level_bytes: int) -> ChipFacts:
    return ChipFacts(
        units=units,
        simds=4,  # D: of a WGP
        waves_per_simd=16,  # D
        workgroups=32,  # D: in WGP mode
        vgprs_per_simd=1536,  # D: wave32
        vgpr_granule=24,  # D
        lds_bytes=131072,  # R: of a WGP; a workgroup may have half (D)
        valu_cycles=1,  # R: wave32
        matrix_beside_valu=False,  # D
        scalar_cycles=1,  # R
        lds_read_cycles=_RDNA_LDS,
        lds_write_cycles=_RDNA_LDS,
        memory_bytes_per_cycle=128,  # R: 64 a CU
        l2_bytes_per_cycle=None,
        l2_parts=1,
        last_level_gb_per_s=None,
        last_level_bytes=last_level_bytes,
        load_cycles=800,  # U: as gfx942
        lds_latency_cycles=64,  # U: as gfx942
        launch_seconds=_LAUNCH_SECONDS,
    )


CHIPS: Mapping[str, ChipFacts] = MappingProxyType(
    {
        "gfx90a": _cdna(
            units=110,
            dies=1,
            lds_bytes=65536,
            lds_read_cycles=_GFX9_READ,
            last_level_gb_per_s=None,  # R: has none
            last_level_bytes=8 * _MIB,  # R: the L2
            l2_channels=32,  # D
        ),
        "gfx942": _cdna(
            units=304,
            dies=8,  # D: XCDs
            lds_bytes=65536,
            lds_read_cycles=_GFX9_READ,
            last_level_gb_per_s=17000,  # D: AMD's slides on MI300
            last_level_bytes=256 * _MIB,  # D
            l2_channels=16 * 8,  # R: of each XCD
        ),
        "gfx950": _cdna(
            units=256,
            dies=8,  # D
            lds_bytes=163840,
            lds_read_cycles=_GFX950_READ,
            last_level_gb_per_s=17000,  # U: as gfx942
            last_level_bytes=256 * _MIB,  # D
            l2_channels=16 * 8,  # U: as gfx942
        ),
        "gfx1100": _rdna(units=48, last_level_bytes=96 * _MIB),  # R
        "gfx1201": _rdna(units=32, last_level_bytes=64 * _MIB),  # R
    }
)


# Why a target may have no row, by back end.
_UNMODELLED = MappingProxyType(
    {
        "cuda": "its kernels are PTX, which the driver compiles again",
        "rocm": "its chip has no row of facts",
    }
)


def chip_facts(target: Target) -> ChipFacts:
    """The row of a target, or UnsupportedTarget where the model has none."""
    if row := CHIPS.get(target.name):
        return row
    why = _UNMODELLED.get(target.backend, "it is no GPU")
    raise UnsupportedTarget(
        f"target {target.name}: not modelled, for {why}; the model knows {', '.join(CHIPS)}"
    )


def rank_facts(target: Target) -> ChipFacts:
    """The row of a target, or for NVIDIA's a rough one, made to rank tilings and nothing else.

    R: four partitions an SM, each with 512 registers a lane, 16 warps and a matrix unit of its own;
    the rest as on gfx942. Raises UnsupportedTarget for an AMD chip without a row: a rank by another
    chip's facts would choose other tiles and splits without a word.
    """
    if row := CHIPS.get(target.name):
        return row
    if target.backend != "cuda":
        return chip_facts(target)  # refuses it
    return replace(
        CHIPS["gfx942"],
        units=target.compute_units,
        simds=target.simds_per_unit,
        waves_per_simd=16,
        lds_bytes=target.lds_bytes,
        valu_cycles=2,
        scalar_cycles=1,
        l2_bytes_per_cycle=None,
        l2_parts=1,
        last_level_gb_per_s=None,
        last_level_bytes=40 * _MIB,
    )
