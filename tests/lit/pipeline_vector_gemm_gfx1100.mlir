// The machine code of vector code on gfx1100: fused multiply-adds in registers, no LDS, no matrix
// instructions, no scratch, no spills.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx1100 --strategy vector_gemm \
// RUN:   -n 8 -g 32 -k 1 -c 1 --image 16x16 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=FMA
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx1100 --strategy vector_gemm \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --pad 1x0 --dtype f32 > %t
// RUN: %filecheck --input-file %t --check-prefix=FMA
// RUN: %filecheck --input-file %t --check-prefix=NONE

// FMA: main_dispatch_0{{.*}}:
// FMA: {{v_(pk_|dual_)?fmac?_(mix_)?f32}}
// FMA: s_endpgm

// NONE-NOT: v_wmma
// NONE-NOT: {{ds_(read|write|load|store)}}
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .sgpr_spill_count: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
