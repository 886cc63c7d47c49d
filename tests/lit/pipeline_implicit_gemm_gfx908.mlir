// The machine code of an implicit GEMM on gfx908: MFMA with its sums in accumulation registers,
// fragments read from LDS four or eight bytes at a time and never two, no scratch, no spills.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx908 --strategy implicit_gemm \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx908 --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=NONE

// ROUND: main_dispatch_0{{.*}}:
// ROUND: buffer_load_dwordx{{2|4}}
// ROUND: ds_read{{2?(st64)?}}_b64
// ROUND: v_mfma_f32_{{16x16x16|32x32x8}}f16 a[
// ROUND: s_endpgm

// A lane of a bf16 instruction takes two elements: four bytes.
// ODD: main_dispatch_0{{.*}}:
// ODD: ds_read{{2?(st64)?}}_b32
// ODD: v_mfma_f32_{{16x16x8|32x32x4}}bf16 a[
// ODD: s_endpgm

// NONE-NOT: ds_read_u16
// NONE-NOT: _1k
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
