// The machine code of operands with block scales on gfx950: elements and scales straight from
// memory, matrix instructions that take the scales, no conversion, no LDS, no scratch. A weight
// gradient, whose blocks are images, has copies in front that put these innermost.

// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy scaled_gemm --direction fwd \
// RUN:   -n 4 -k 64 -c 256 --image 14x14 --filter 3x3 --pad 1 --dtype f8E4M3FN --block-scales mx > %t
// RUN: %filecheck --input-file %t
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %filecheck --input-file %t --check-prefix=ALONE
// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy scaled_gemm \
// RUN:   -n 128 -k 64 -c 32 --image 6x6 --filter 3x3 --dtype f8E5M2 --block-scales mx > %t.wgrad
// RUN: %filecheck --input-file %t.wgrad --check-prefix=WGRAD
// RUN: %filecheck --input-file %t.wgrad --check-prefix=NONE
// Blocks of 6 bits are 24 bytes of a lane, those of 4 bits 16.
// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy scaled_gemm --direction fwd \
// RUN:   -n 4 -k 64 -c 256 --image 14x14 --filter 3x3 --pad 1 --dtype f6E3M2FN --block-scales mx > %t.f6
// RUN: %filecheck --input-file %t.f6 --check-prefix=F6
// RUN: %filecheck --input-file %t.f6 --check-prefix=NONE
// RUN: %filecheck --input-file %t.f6 --check-prefix=ALONE
// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy scaled_gemm \
// RUN:   -n 128 -k 64 -c 32 --image 6x6 --filter 3x3 --dtype f4E2M1FN --block-scales mx > %t.f4
// RUN: %filecheck --input-file %t.f4 --check-prefix=F4
// RUN: %filecheck --input-file %t.f4 --check-prefix=NONE
// What else is multiplied is bf16.
// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy implicit_gemm \
// RUN:   --direction fwd -n 4 -k 64 -c 256 --image 14x14 --filter 3x3 --pad 1 --dtype f8E4M3FN \
// RUN:   --block-scales mx | %filecheck --check-prefix=WIDER

// CHECK: main_dispatch_0{{.*}}:
// CHECK: buffer_load_dwordx4
// CHECK: buffer_load_ubyte
// CHECK: v_mfma_scale_f32_16x16x128_f8f6f4
// CHECK: buffer_store_dwordx4
// CHECK: s_endpgm

// ALONE-NOT: main_dispatch_1
// ALONE: .end_amdgpu_metadata

// NONE-NOT: v_mfma_f32
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata

// Bits of CBSZ and BLGP name the type: 1 is E5M2, 3 is E3M2, 4 is E2M1.
// WGRAD: v_mfma_scale_f32_16x16x128_f8f6f4 {{.*}} cbsz:1 blgp:1

// F6-DAG: buffer_load_dwordx4
// F6-DAG: buffer_load_dwordx2
// F6: v_mfma_scale_f32_16x16x128_f8f6f4 {{.*}} cbsz:3 blgp:3

// F4: v_mfma_scale_f32_16x16x128_f8f6f4 {{.*}} cbsz:4 blgp:4

// WIDER: v_mfma_f32_{{16x16x32|32x32x16}}_bf16
