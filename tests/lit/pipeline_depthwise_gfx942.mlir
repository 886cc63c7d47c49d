// The machine code of a depthwise weight gradient on gfx942: operands straight from memory in
// vectors, fused multiply-adds in registers, sums by way of LDS, no matrix instructions, no scratch.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy depthwise \
// RUN:   -n 32 -g 144 -k 1 -c 1 --image 56x56 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t
// RUN: %filecheck --input-file %t --check-prefix=NONE

// CHECK: main_dispatch_0{{.*}}:
// CHECK: buffer_load_dword
// CHECK: v_pk_fma_f32
// CHECK: ds_write
// CHECK: s_barrier
// CHECK: ds_read
// CHECK: s_endpgm

// NONE-NOT: v_mfma
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
