// A data gradient without a stride is one kernel: no kernel in front of it arranges the weight. The
// tap is a scalar. No scratch, no spills. Chips with MFMA and with WMMA.

// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=MFMA
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=WMMA
// RUN: %filecheck --input-file %t --check-prefix=NONE

// MFMA: named_sequence @entry_take_reversed
// MFMA: named_sequence @entry_read_reversed
// MFMA: main_dispatch_0_matmul_like{{.*}}:
// MFMA: v_mfma
// MFMA: s_endpgm
// MFMA-NOT: main_dispatch_1

// WMMA: named_sequence @entry_read_reversed
// WMMA: main_dispatch_0_matmul_like{{.*}}:
// WMMA: v_wmma
// WMMA: s_endpgm
// WMMA-NOT: main_dispatch_1

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
