// The machine code of depthwise forward passes and data gradients on gfx942: operands straight from
// memory in vectors, fused multiply-adds in registers, the result stored in vectors, no LDS, no
// matrix instructions, no scratch. A strided data gradient is one kernel.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy depthwise_pixels --direction fwd \
// RUN:   -n 32 -g 144 -k 1 -c 1 --image 56x56 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy depthwise_pixels --direction bwd_data \
// RUN:   -n 32 -g 144 -k 1 -c 1 --image 56x56 --filter 3x3 --pad 1 --stride 2 > %t.strided
// RUN: %filecheck --input-file %t.strided
// RUN: %filecheck --input-file %t.strided --check-prefix=NONE

// CHECK: main_dispatch_0{{.*}}:
// CHECK: buffer_load_dwordx{{[24]}}
// CHECK: v_pk_fma_f32
// CHECK: buffer_store_dwordx{{[24]}}
// CHECK: s_endpgm

// NONE-NOT: v_mfma
// NONE-NOT: ds_{{read|write}}
// NONE-NOT: main_dispatch_1
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
