# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pipes of several chips have in common; marks of source as in `amd.py`.

- D: AMD "CDNA3 ISA", ROCm Compute Profiler "Pipeline descriptions" and "L2 cache"; LLVM
  `AMDGPUBaseInfo.cpp` (registers, waves and workgroups a unit) and `SISchedule.td`; IREE
  `KnownTargets.cpp`; ROCm GPU specification pages.
- M: github.com/tingqli/pyhip `docs/mem_latency.md`, `docs/mfma-valu-coissue.md` and its note on
  bank conflicts (MI308X); HipKittens' phase experiments (gfx950); and those of `sustained.py`.

These are peaks, and latencies of busy chips: tilings are ranked by them. What a chip keeps up is in
`sustained.py`.
"""

from __future__ import annotations

from conv_compiler.targets.target import LdsCycles, Pipes

# M: conflict-free ds_read_b32 4 cycles and b128 16 on one of a CU's two ports (D: both may issue),
# so half of that a CU; b64 between (C). D: stores take 8 (4 bytes) and 20 (16 bytes) a port;
# 8 bytes between (C).
GFX9_READ = LdsCycles(bytes_4=2.0, bytes_8=4.0, bytes_16=8.0)
GFX9_WRITE = LdsCycles(bytes_4=4.0, bytes_8=6.0, bytes_16=10.0)
# M: the conflict groups of 8- and 16-byte reads double on gfx950; 4-byte ones are assumed not to.
GFX950_READ = LdsCycles(bytes_4=2.0, bytes_8=2.0, bytes_16=4.0)
# M: 128 bytes a clock for each half of a WGP, of which 100 were measured (RX 7900 XT); R: writes as
# reads.
RDNA_LDS = LdsCycles(bytes_4=0.5, bytes_8=1.0, bytes_16=2.0)

KIB, MIB = 2**10, 2**20
# M: what a dispatch costs beyond its work in a queue of dispatches: 2.1 us on MI210, graph or not;
# `sustained.py` has the most that was seen of each chip.
LAUNCH_SECONDS = 2e-6


def cdna_pipes(
    *,
    dies: int,
    lds_read_cycles: LdsCycles,
    last_level_gb_per_s: float | None,
    last_level_bytes: int,
    l2_channels: int,
    l1_bytes: int,
    waves_per_simd: int = 8,  # D: since CDNA2
    vgprs_per_simd: int = 512,  # D: since CDNA2, with accumulation registers
    vgpr_granule: int = 8,  # D: since CDNA2
    accumulators_apart: bool = False,  # D: since CDNA2
) -> Pipes:
    """Of a CDNA chip, whose unit is a CU."""
    return Pipes(
        cus_per_unit=1,
        waves_per_simd=waves_per_simd,
        workgroups=16,  # D: barrier slots
        vgprs_per_simd=vgprs_per_simd,
        vgpr_granule=vgpr_granule,
        accumulators_apart=accumulators_apart,
        valu_cycles=4,  # D: 16 lanes a cycle, 64 a wave
        matrix_beside_valu=True,  # D; M: three vector instructions hide under one of 16 cycles
        scalar_cycles=4,  # D: each SIMD issues every fourth cycle
        lds_read_cycles=lds_read_cycles,
        lds_write_cycles=GFX9_WRITE,
        memory_bytes_per_cycle=64,  # M: the vector L1: 38.8 TB/s on MI300X, 10.5 on MI210
        # C: of D, that loads without two lanes in a line take four times as long as adjacent ones.
        lines_per_cycle=4,
        l1_bytes=l1_bytes,
        l2_bytes_per_cycle=128 * l2_channels,  # D: channels; M: 128 bytes each (80 % reached)
        l2_parts=dies,
        last_level_gb_per_s=last_level_gb_per_s,
        last_level_bytes=last_level_bytes,
        load_cycles=800,  # M: 590 (MI210) to 890 (MI300X) from memory, 213 to 290 from L2
        lds_latency_cycles=64,  # M: 48 to 64
        launch_seconds=LAUNCH_SECONDS,
    )


def rdna_pipes(*, last_level_bytes: int, vgprs_per_simd: int = 1536) -> Pipes:
    """Of an RDNA chip, whose unit is a WGP of two CUs. Its registers are those of wave32."""
    return Pipes(
        cus_per_unit=2,  # D
        waves_per_simd=16,  # D
        workgroups=32,  # D: in WGP mode
        vgprs_per_simd=vgprs_per_simd,
        vgpr_granule=vgprs_per_simd // 64,  # D: 24 of 1536; R: 16 of 1024
        accumulators_apart=False,  # D
        valu_cycles=1,  # R: wave32
        matrix_beside_valu=False,  # D
        scalar_cycles=1,  # R
        lds_read_cycles=RDNA_LDS,
        lds_write_cycles=RDNA_LDS,
        memory_bytes_per_cycle=128,  # M: 64 a CU (gfx1102, github.com/RRZE-HPC/gpu-benches)
        lines_per_cycle=None,
        l1_bytes=32 * KIB,  # D: of a CU
        l2_bytes_per_cycle=None,
        l2_parts=1,
        last_level_gb_per_s=None,
        last_level_bytes=last_level_bytes,
        load_cycles=800,  # U: under load, as gfx942; M: 551 on an idle RX 7900 XT
        lds_latency_cycles=64,  # U: under load, as gfx942; M: 33 on an idle RX 7900 XT
        launch_seconds=LAUNCH_SECONDS,
    )


def gfx125_pipes() -> Pipes:
    """Of gfx1250, of which no document on its pipes was read: these rank tilings and no more."""
    return Pipes(
        cus_per_unit=1,  # U
        waves_per_simd=16,  # U: as RDNA
        workgroups=32,  # U: as RDNA
        vgprs_per_simd=1024,  # D: what one wave may have
        vgpr_granule=16,  # U
        accumulators_apart=False,  # D
        valu_cycles=1,  # U: wave32, as RDNA
        matrix_beside_valu=True,  # R: LLVM knows hazards of what runs beside WMMA
        scalar_cycles=1,  # U: as RDNA
        lds_read_cycles=GFX950_READ,  # U: as gfx950
        lds_write_cycles=GFX9_WRITE,  # U: as gfx950
        memory_bytes_per_cycle=128,  # U
        lines_per_cycle=None,
        l1_bytes=32 * KIB,  # U: as gfx950
        l2_bytes_per_cycle=None,
        l2_parts=1,  # U
        last_level_gb_per_s=None,
        last_level_bytes=256 * MIB,  # U: as gfx950
        load_cycles=800,  # U: as gfx942
        lds_latency_cycles=64,  # U: as gfx942
        launch_seconds=LAUNCH_SECONDS,
    )
