// Rows of LDS are whole in `fwd` on RDNA: 64 elements of 2 bytes and 16 bytes of padding for each of
// 128 rows. Lanes write and read them in 16 bytes, none in halves. A data gradient has no such rows.

// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction fwd --tile 64x64x64 -n 32 -k 512 -c 256 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage isa --target gfx1100 --strategy implicit_gemm --dtype bf16 \
// RUN:   --direction fwd --tile 64x64x64 -n 32 -k 512 -c 256 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t
// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction bwd_data --tile 64x64x64 -n 32 -k 512 -c 256 --image 7x7 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=STEPS

// CHECK:      main_dispatch_0_matmul_like{{.*}}:
// CHECK-NOT:  ds_{{load|store}}_{{2addr|b64}}
// CHECK:      ds_store_b128
// CHECK-NOT:  ds_{{load|store}}_{{2addr|b64}}
// CHECK:      ds_load_b128
// CHECK-NOT:  ds_{{load|store}}_{{2addr|b64}}
// CHECK:      v_wmma
// CHECK-NOT:  ds_{{load|store}}_{{2addr|b64}}
// CHECK:      .amdhsa_group_segment_fixed_size 18432

// STEPS-NOT:  .amdhsa_group_segment_fixed_size 18432
// STEPS:      v_wmma
