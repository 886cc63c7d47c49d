// The machine code of forward passes and data gradients of groups of a few channels: operands
// straight from memory in vectors, products of one group's channels alone, whole vectors stored; one
// kernel without LDS and scratch. gfx942 multiplies 16 groups of four channels at once, or one of
// sixteen; gfx1100 has dot products.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy depthwise_pixels --direction fwd \
// RUN:   -n 32 -g 32 -k 4 -c 4 --image 56x56 --filter 3x3 --pad 1 > %t.four
// RUN: %filecheck --input-file %t.four --check-prefixes=BLOCKS,CHECK
// RUN: %filecheck --input-file %t.four --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx942 --strategy depthwise_pixels --direction bwd_data \
// RUN:   -n 32 -g 32 -k 16 -c 16 --image 14x14 --filter 3x3 --pad 1 > %t.sixteen
// RUN: %filecheck --input-file %t.sixteen --check-prefixes=TILES,CHECK
// RUN: %filecheck --input-file %t.sixteen --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target gfx1100 --strategy depthwise_pixels --direction bwd_data \
// RUN:   -n 32 -g 32 -k 8 -c 8 --image 28x28 --filter 3x3 --pad 1 > %t.dots
// RUN: %filecheck --input-file %t.dots --check-prefix=DOTS
// RUN: %filecheck --input-file %t.dots --check-prefix=NONE

// BLOCKS: buffer_load_dwordx2
// BLOCKS: v_mfma_f32_4x4x4_16b_f16
// BLOCKS: buffer_store_dwordx2
// TILES: buffer_load_dwordx2
// TILES: v_mfma_f32_16x16x16_f16
// TILES: buffer_store_dwordx2
// CHECK: s_endpgm

// DOTS: buffer_load_b128
// DOTS: v_{{dual_dot2acc|dot2acc|dot2}}_f32_f16
// DOTS: buffer_store_b64
// DOTS: s_endpgm

// NONE-NOT: ds_{{read|write|load|store}}
// NONE-NOT: main_dispatch_1
// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
