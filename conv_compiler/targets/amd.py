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

from conv_compiler.targets.mma import (
    CDNA2_CYCLES,
    CDNA2_MMA,
    CDNA3_CYCLES,
    CDNA3_MMA,
    CDNA4_CYCLES,
    CDNA4_MMA,
    RDNA3_CYCLES,
    RDNA3_MMA,
    RDNA4_CYCLES,
    RDNA4_MMA,
)
from conv_compiler.targets.pipes import (
    GFX9_READ,
    GFX950_READ,
    MIB,
    cdna_pipes,
    rdna_pipes,
)
from conv_compiler.targets.target import Isa, Target

# D of `vgpr_encoding`: LLVM `AMDGPUBaseInfo.cpp`, getVGPREncodingGranule.
CDNA2 = Isa(name="CDNA2", encoding="cdna", generation=9, cdna=2, vgpr_encoding=8)
CDNA3 = Isa(name="CDNA3", encoding="cdna", generation=9, cdna=3, vgpr_encoding=8)
CDNA4 = Isa(name="CDNA4", encoding="cdna", generation=9, cdna=4, vgpr_encoding=8)
RDNA3 = Isa(name="RDNA3", encoding="rdna3", generation=11, cdna=0, vgpr_encoding=8)
RDNA4 = Isa(name="RDNA4", encoding="rdna4", generation=12, cdna=0, vgpr_encoding=8)

AMD = (
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
        mma=CDNA2_MMA,
        cycles=CDNA2_CYCLES,
        # D: AMD's MIOpen documentation, "MI200 MFMA behavior specifics".
        flushed=("f16", "bf16"),
        # D: as MIOpen does there unless it is told not to (the same page).
        gradients_as=(("f16", "bf16"),),
        pipes=cdna_pipes(
            dies=1,  # D
            lds_read_cycles=GFX9_READ,
            last_level_gb_per_s=None,  # R: has none
            last_level_bytes=8 * MIB,  # R: the L2
            l2_channels=32,  # D
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
        mma=CDNA3_MMA,
        cycles=CDNA3_CYCLES,
        pipeline_stages=3,
        pipes=cdna_pipes(
            dies=8,  # D: XCDs
            lds_read_cycles=GFX9_READ,
            last_level_gb_per_s=17000,  # D: AMD's slides on MI300
            last_level_bytes=256 * MIB,  # D
            l2_channels=16 * 8,  # R: of each XCD
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
        mma=CDNA4_MMA,
        cycles=CDNA4_CYCLES,
        pipeline_stages=3,
        pipes=cdna_pipes(
            dies=8,  # D
            lds_read_cycles=GFX950_READ,
            last_level_gb_per_s=17000,  # U: as gfx942
            last_level_bytes=256 * MIB,  # D
            l2_channels=16 * 8,  # U: as gfx942
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
        mma=RDNA3_MMA,
        cycles=RDNA3_CYCLES,
        pipes=rdna_pipes(last_level_bytes=96 * MIB),  # R
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
        mma=RDNA4_MMA,
        cycles=RDNA4_CYCLES,
        pipes=rdna_pipes(last_level_bytes=64 * MIB),  # R
    ),
)
