// The machine code of an implicit GEMM on gfx942: MFMA, fragments read from LDS eight bytes at a
// time and never two, 16-byte loads where channels come in eights, no scratch, no spills.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy implicit_gemm \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=NONE

// ROUND: main_dispatch_0{{.*}}:
// ROUND: buffer_load_dwordx4
// ROUND: ds_read{{2?(st64)?}}_b64
// ROUND: v_mfma_f32_{{16x16x16|32x32x8}}_f16
// ROUND: s_endpgm

// ODD: main_dispatch_0{{.*}}:
// ODD: ds_read{{2?(st64)?}}_b64
// ODD: v_mfma_f32_{{16x16x16|32x32x8}}_bf16
// ODD: s_endpgm

// NONE-NOT: ds_read_u16
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata

// Convolutions and data gradients: channels lie side by side along gemm_k, and are read so.

// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction fwd \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ALONG
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction bwd_data \
// RUN:   -n 16 -k 64 -c 64 --image 15x15 --filter 3x3 --stride 2 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ALONG
// RUN: %filecheck --input-file %t --check-prefix=NONE

// ALONG: main_dispatch_{{[0-9]}}_matmul_like{{.*}}:
// ALONG-NOT: buffer_load_ushort
// ALONG: buffer_load_dwordx{{[24]}}
// ALONG-NOT: buffer_load_ushort
// ALONG: v_mfma_f32_{{16x16x16|32x32x8}}_f16
// ALONG: s_endpgm

// In one part: no second kernel, sums converted in registers and never again in LDS.

// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 1 -n 16 -k 64 -c 64 --image 16x16 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=STORES
// RUN: %filecheck --input-file %t --check-prefix=NONE

// STORES: main_dispatch_0_matmul_like{{.*}}:
// Two iterations of two instructions each.
// STORES-COUNT-4: v_mfma_f32_16x16x16_f16
// STORES-NOT: ds_write
// STORES: v_cvt_f16_f32
// STORES-NOT: ds_write
// STORES: buffer_store_dwordx{{[24]}}
// STORES-NOT: buffer_store_short
// STORES: s_endpgm
// STORES-NOT: main_dispatch_1
