// Operands that are contiguous along gemm_k: copied along k steps by the schedule, read 8 or 16 bytes
// at a time, no scratch. All summed loops inside or pixels outside, chips with MFMA and with WMMA.

// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction fwd --split-k 2 -n 16 -k 64 -c 64 --image 8x8 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=FLAT
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx90a --strategy implicit_gemm \
// RUN:   --direction fwd -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=PIXELS
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx1100 --strategy implicit_gemm \
// RUN:   --direction bwd_data -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=RDNA
// RUN: %filecheck --input-file %t --check-prefix=NONE

// FLAT:   transform.include @threads_along_k_ri_row_k
// FLAT:   main_dispatch_0_matmul_like{{.*}}:
// FLAT:   buffer_load_dwordx{{[24]}}
// FLAT:   ds_write{{.*}}_b{{64|128}}
// FLAT:   v_mfma

// PIXELS: transform.include @threads_along_k_qri_row_k
// PIXELS: buffer_load_dwordx{{[24]}}
// PIXELS: ds_write{{.*}}_b{{64|128}}
// PIXELS: v_mfma

// RDNA:   transform.include @threads_along_k_{{q?}}ri_row_k
// RDNA:   buffer_load_b{{64|128}}
// RDNA:   ds_store{{.*}}_b{{32|64|128}}
// RDNA:   v_wmma

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
