# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AMD's chips, one row each. The model, the virtual GPU and its native table derive from the row.

Marks in the comments: D a vendor's document, LLVM's or IREE's source, M measured by others, C
computed from those, R general knowledge that no source was read for, U unknown and assumed.

- D of wave sizes, LDS, compute units and memory: IREE's `compiler/src/iree/compiler/Codegen/
  Dialect/GPU/TargetUtils/KnownTargets.cpp`, which cites AMD's product pages; `conv-compiler list
  targets --check` compares the rows with what the compiler reports.
- D of `elf_mach`: LLVM's AMDGPU usage guide, "ELF header e_flags".
- D of `dies`: AMD's CDNA 3 and CDNA 4 white papers.
- Sources of the pipes are in `pipes.py`, those of matrix instructions in `mma.py`.

`native/chips_table.py` imports this module when the package is built, where neither numpy nor IREE
is installed.
"""

from __future__ import annotations

from conv_compiler.targets import mma, sustained
from conv_compiler.targets.pipes import (
    GFX9_READ,
    GFX950_READ,
    KIB,
    MIB,
    cdna_pipes,
    gfx125_pipes,
    rdna_pipes,
)
from conv_compiler.targets.target import Isa, Target

# D of `vgpr_encoding`: LLVM `AMDGPUBaseInfo.cpp`, getVGPREncodingGranule; of `packed_ids`: LLVM's
# AMDGPU usage guide, "Initial Kernel Execution State". R of both on CDNA1.
# D of `dots`: MLIR's documentation of amdgpu.dot (v_dot2_f32_f16, v_dot2_f32_bf16, v_dot4_i32_i8).
DOTS, DOTS_BF16 = ("f16", "i8"), ("f16", "bf16", "i8")
CDNA1 = Isa(
    name="CDNA1",
    encoding="cdna",
    generation=9,
    cdna=1,
    vgpr_encoding=4,
    packed_ids=False,
    dots=DOTS,
)
CDNA2 = Isa(name="CDNA2", encoding="cdna", generation=9, cdna=2, dots=DOTS)
CDNA3 = Isa(name="CDNA3", encoding="cdna", generation=9, cdna=3, dots=DOTS)
# ds_read_b64_tr_b16 (D: CDNA4 ISA, LDS instructions); those of 8 bits are not used.
CDNA4 = Isa(
    name="CDNA4",
    encoding="cdna",
    generation=9,
    cdna=4,
    transposed_read_bits=(16,),
    lds_load_bytes=16,
    dots=DOTS_BF16,
)
RDNA3 = Isa(name="RDNA3", encoding="rdna3", generation=11, cdna=0, dots=DOTS_BF16)
# The package's tables of RDNA3 are those of RDNA3.5, which adds scalar floats.
RDNA35 = Isa(name="RDNA3.5", encoding="rdna3", generation=11, cdna=0, dots=DOTS_BF16)
RDNA4 = Isa(name="RDNA4", encoding="rdna4", generation=12, cdna=0, dots=DOTS_BF16)
GFX125 = Isa(
    name="gfx125",
    encoding="gfx125",
    generation=12,
    cdna=0,
    not_executed="no table of its instructions' encodings is at hand",
)

AMD = (
    Target(
        name="gfx908",
        backend="rocm",
        chip="gfx908",
        isa=CDNA1,
        elf_mach=0x30,  # D
        subgroup_size=64,  # D
        lds_bytes=65536,  # D
        compute_units=120,  # D: MI100
        simds_per_unit=4,  # D
        vgprs_per_lane=512,  # R
        clock_ghz=1.502,  # C: of 184.6 TFLOP/s of f16 (D)
        memory_gb_per_s=1230,  # D
        vector_flops_per_clock=128,  # R
        mma=mma.CDNA1_MMA,
        cycles=mma.CDNA1_CYCLES,
        # R: it flushes no denormals; AMD's page on MI200 names MI200 alone.
        pipes=cdna_pipes(
            dies=1,  # D
            lds_read_cycles=GFX9_READ,  # U: as gfx942
            last_level_gb_per_s=None,  # R: has none
            last_level_bytes=8 * MIB,  # R: the L2
            l2_channels=32,  # R
            l1_bytes=16 * KIB,  # D
            waves_per_simd=10,  # R
            vgprs_per_simd=256,  # R
            vgpr_granule=4,  # R
            accumulators_apart=True,  # R
        ),
    ),
    Target(
        name="gfx90a",
        backend="rocm",
        chip="gfx90a",
        isa=CDNA2,
        elf_mach=0x3F,  # D
        subgroup_size=64,  # D
        lds_bytes=65536,  # D
        compute_units=110,  # D: one of MI250X's two dies: a HIP device of its own
        simds_per_unit=4,  # D
        vgprs_per_lane=512,  # D
        clock_ghz=1.7,  # D
        memory_gb_per_s=1600,  # D
        vector_flops_per_clock=128,  # D
        mma=mma.CDNA2_MMA,
        blocks=mma.CDNA2_BLOCKS,
        cycles=mma.CDNA2_CYCLES,
        # D: AMD's MIOpen documentation, "MI200 MFMA behavior specifics".
        flushed=("f16", "bf16"),
        # D: as MIOpen does there unless it is told not to (the same page).
        gradients_as=(("f16", "bf16"),),
        sustained=sustained.GFX90A,
        pipes=cdna_pipes(
            dies=1,  # D
            lds_read_cycles=GFX9_READ,
            last_level_gb_per_s=None,  # R: has none
            last_level_bytes=8 * MIB,  # R: the L2
            l2_channels=32,  # D
            l1_bytes=16 * KIB,  # D
        ),
    ),
    Target(
        name="gfx942",
        backend="rocm",
        chip="gfx942",
        isa=CDNA3,
        elf_mach=0x4C,  # D
        subgroup_size=64,  # D
        lds_bytes=65536,  # D
        compute_units=304,  # D: MI300X
        simds_per_unit=4,  # D
        vgprs_per_lane=512,  # D
        clock_ghz=2.1,  # D
        memory_gb_per_s=5300,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.CDNA3_MMA,
        blocks=mma.CDNA3_BLOCKS,
        cycles=mma.CDNA3_CYCLES,
        pipeline_stages=3,
        sustained=sustained.GFX942,
        pipes=cdna_pipes(
            dies=8,  # D: XCDs
            lds_read_cycles=GFX9_READ,
            last_level_gb_per_s=17000,  # D: AMD's slides on MI300; M: 7100 at most
            last_level_bytes=256 * MIB,  # D
            l2_channels=16 * 8,  # D: of each XCD
            l1_bytes=32 * KIB,  # D
        ),
    ),
    Target(
        name="gfx950",
        backend="rocm",
        chip="gfx950",
        isa=CDNA4,
        elf_mach=0x4F,  # D
        subgroup_size=64,  # D
        lds_bytes=163840,  # D
        compute_units=256,  # D: MI350X and MI355X
        simds_per_unit=4,  # D
        vgprs_per_lane=512,  # D
        clock_ghz=2.4,  # D
        memory_gb_per_s=8000,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.CDNA4_MMA,
        blocks=mma.CDNA4_BLOCKS,
        scaled=mma.CDNA4_SCALED,
        cycles=mma.CDNA4_CYCLES,
        pipeline_stages=3,
        sustained=sustained.GFX950,
        pipes=cdna_pipes(
            dies=8,  # D
            lds_read_cycles=GFX950_READ,
            last_level_gb_per_s=17000,  # U: as gfx942; nothing was published
            last_level_bytes=256 * MIB,  # D
            l2_channels=16 * 8,  # U: as gfx942
            l1_bytes=32 * KIB,  # D
        ),
    ),
    Target(
        name="gfx1100",
        backend="rocm",
        chip="gfx1100",
        isa=RDNA3,
        elf_mach=0x41,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=96,  # D: RX 7900 XTX
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.5,  # D
        memory_gb_per_s=960,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA3_MMA,
        cycles=mma.RDNA3_CYCLES,
        sustained=sustained.GFX1100,
        pipes=rdna_pipes(last_level_bytes=96 * MIB),  # R
    ),
    Target(
        name="gfx1101",
        backend="rocm",
        chip="gfx1101",
        isa=RDNA3,
        elf_mach=0x46,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=60,  # D: RX 7800 XT
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.43,  # C: of 37.3 TFLOP/s of f32 (D)
        memory_gb_per_s=620,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA3_MMA,
        cycles=mma.RDNA3_CYCLES,
        pipes=rdna_pipes(last_level_bytes=64 * MIB),  # R
    ),
    Target(
        name="gfx1103",
        backend="rocm",
        chip="gfx1103",
        isa=RDNA3,
        elf_mach=0x44,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=12,  # D: Phoenix, as the Radeon 780M
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.7,  # R: of a Ryzen 7 7840HS
        memory_gb_per_s=90,  # R: two channels of DDR5-5600
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA3_MMA,
        cycles=mma.RDNA3_CYCLES,
        pipes=rdna_pipes(last_level_bytes=2 * MIB, vgprs_per_simd=1024),  # R
    ),
    Target(
        name="gfx1150",
        backend="rocm",
        chip="gfx1150",
        isa=RDNA35,
        elf_mach=0x43,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=16,  # D: Strix Point, as the Radeon 890M
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.9,  # R: of a Ryzen AI 9 HX 370
        memory_gb_per_s=120,  # R: 128 bits of LPDDR5X-7500
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA3_MMA,
        cycles=mma.RDNA3_CYCLES,
        pipes=rdna_pipes(last_level_bytes=2 * MIB, vgprs_per_simd=1024),  # R
    ),
    Target(
        name="gfx1151",
        backend="rocm",
        chip="gfx1151",
        isa=RDNA35,
        elf_mach=0x4A,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=40,  # D: Strix Halo, as the Radeon 8060S
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.9,  # R: of a Ryzen AI Max+ 395
        memory_gb_per_s=256,  # R: 256 bits of LPDDR5X-8000
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA3_MMA,
        cycles=mma.RDNA3_CYCLES,
        pipes=rdna_pipes(last_level_bytes=32 * MIB),  # R
    ),
    Target(
        name="gfx1200",
        backend="rocm",
        chip="gfx1200",
        isa=RDNA4,
        elf_mach=0x48,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=32,  # D: RX 9060 XT
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=3.13,  # C: of 25.6 TFLOP/s of f32 (D)
        memory_gb_per_s=320,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA4_MMA,
        cycles=mma.RDNA4_CYCLES,
        pipes=rdna_pipes(last_level_bytes=32 * MIB),  # R
    ),
    Target(
        name="gfx1201",
        backend="rocm",
        chip="gfx1201",
        isa=RDNA4,
        elf_mach=0x4E,  # D
        subgroup_size=32,  # D
        lds_bytes=65536,  # D: of a workgroup; R: a WGP has twice as much
        compute_units=64,  # D: RX 9070 XT
        simds_per_unit=2,  # D
        vgprs_per_lane=256,  # D
        clock_ghz=2.97,  # D
        memory_gb_per_s=640,  # D
        vector_flops_per_clock=256,  # D
        mma=mma.RDNA4_MMA,
        cycles=mma.RDNA4_CYCLES,
        sustained=sustained.GFX1201,
        pipes=rdna_pipes(last_level_bytes=64 * MIB),  # R
    ),
    Target(
        name="gfx1250",
        backend="rocm",
        chip="gfx1250",
        isa=GFX125,
        elf_mach=0x49,  # D
        subgroup_size=32,  # D
        lds_bytes=327680,  # D
        compute_units=256,  # U: as gfx950
        simds_per_unit=4,  # D
        vgprs_per_lane=1024,  # D
        clock_ghz=2.4,  # U: as gfx950
        memory_gb_per_s=19600,  # R: of an MI455X
        vector_flops_per_clock=256,  # U: as gfx950
        mma=mma.GFX125_MMA,
        cycles=mma.GFX125_CYCLES,
        pipes=gfx125_pipes(),
    ),
)
