// The machine code of an implicit GEMM on gfx1200: WMMA, fragments read from LDS eight bytes at a
// time and never two, 16-byte loads where channels come in eights, no scratch, no spills.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx1200 --strategy implicit_gemm \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx1200 --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=NONE

// ROUND: main_dispatch_0{{.*}}:
// ROUND: buffer_load_b128
// ROUND: ds_load_{{(2addr_)?(stride64_)?}}b64
// ROUND: v_wmma_f32_16x16x16_f16
// ROUND: s_endpgm

// ODD: main_dispatch_0{{.*}}:
// ODD: ds_load_{{(2addr_)?(stride64_)?}}b64
// ODD: v_wmma_f32_16x16x16_bf16
// ODD: s_endpgm

// NONE-NOT: ds_load_u16
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
