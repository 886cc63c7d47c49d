// The machine code of xf32 on gfx942: its instruction alone in the loop, and no f32 product, where
// f32 without `--compute` has those of f32 alone.

// RUN: %conv_compiler inspect --stage isa --target gfx942 --dtype f32 --compute xf32 \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage isa --target gfx942 --dtype f32 --compute tf32 \
// RUN:   --direction fwd -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage isa --target gfx942 --dtype f32 \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=PLAIN

// CHECK-NOT: v_mfma_f32_16x16x4_f32
// CHECK:     v_mfma_f32_16x16x8_xf32
// CHECK-NOT: v_mfma_f32_16x16x4_f32
// CHECK-NOT: scratch_{{load|store}}
// CHECK:     .end_amdgpu_metadata

// PLAIN-NOT: xf32
// PLAIN:     v_mfma_f32_16x16x4_f32
// PLAIN-NOT: _xf32
// PLAIN:     .end_amdgpu_metadata
