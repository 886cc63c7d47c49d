// The machine code of an implicit GEMM on gfx90a: MFMA, fragments read from LDS eight bytes at a
// time and never two, 16-byte loads where channels come in eights, no scratch, no spills. The choice
// may take loads of eight bytes, with which no lane waits for a bank of LDS.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx90a --strategy implicit_gemm \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=CHOSEN
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx90a --strategy implicit_gemm --tile 64x64x32 \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx90a --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=NONE

// CHOSEN: main_dispatch_{{.*}}matmul_like{{.*}}:
// CHOSEN: buffer_load_dwordx{{2|4}}
// CHOSEN: ds_read{{2?(st64)?}}_b64
// CHOSEN: v_mfma_f32_{{16x16x16|32x32x8}}bf16_1k
// CHOSEN: s_endpgm

// ROUND: main_dispatch_{{.*}}matmul_like{{.*}}:
// ROUND: buffer_load_dwordx4
// ROUND: ds_read{{2?(st64)?}}_b64
// ROUND: v_mfma_f32_{{16x16x16|32x32x8}}bf16_1k
// ROUND: s_endpgm

// A lane of a bf16 instruction takes four elements, as of f16: eight bytes.
// ODD: main_dispatch_0{{.*}}:
// ODD: ds_read{{2?(st64)?}}_b64
// ODD: v_mfma_f32_{{16x16x16|32x32x8}}bf16_1k
// ODD: s_endpgm

// NONE-NOT: ds_read_u16
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
