// Pixels that fill no tile, and in the first kernel channels: an operand that is contiguous along
// gemm_k gets no zeros where gemm_k fills its tiles. Where it does not, zeros are there.

// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction fwd --tile 64x64x64 -n 32 -k 40 -c 256 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction bwd_data --tile 64x64x32 -n 32 -k 256 -c 128 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction fwd --tile 64x64x64 -n 32 -k 40 -c 224 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ZEROS

// NONE:      main_dispatch_0_matmul_like{{.*}}:
// NONE-NOT:  v_cndmask_b32_e64 v{{[0-9]+}}, v{{[0-9]+}}, 0,
// NONE-NOT:  v_cndmask_b32_e64 v{{[0-9]+}}, 0, v
// NONE-NOT:  v_cndmask_b32_e32 v{{[0-9]+}}, 0, v
// NONE:      .end_amdgpu_metadata

// ZEROS:     main_dispatch_0_matmul_like{{.*}}:
// ZEROS:     v_cndmask_b32_e{{32|64}} v{{[0-9]+}}, {{v[0-9]+, 0,|0, v}}
