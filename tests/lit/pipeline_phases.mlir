// A strided data gradient: each workgroup's loop runs through the taps of its own phase. A table of
// them is a scalar, of which an iteration shifts out its place; the loop's end is a scalar too. No
// scratch, no spills. Chips with MFMA and with WMMA.

// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 128 -c 128 --image 28x28 --filter 3x3 --stride 2 \
// RUN:   --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=MFMA
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage schedule --stage isa --target gfx1100 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 128 -c 128 --image 28x28 --filter 3x3 --stride 2 \
// RUN:   --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=WMMA
// RUN: %filecheck --input-file %t --check-prefix=NONE

// Two bits a place: of one phase 00, of two 0100 and 1000, in the end of the table again, of the
// last 11100100.
// MFMA:     named_sequence @entry_skip_taps
// MFMA:     main_dispatch_1_matmul_like{{.*}}:
// MFMA-DAG: s_cselect_b32 {{s[0-9]+}}, 0x44, 0
// MFMA-DAG: s_cselect_b32 {{s[0-9]+}}, {{s[0-9]+}}, 0x88
// MFMA-DAG: s_cselect_b32 {{s[0-9]+}}, 0xe4,
// MFMA:     s_lshr_b32
// MFMA:     v_mfma

// WMMA:     main_dispatch_1_matmul_like{{.*}}:
// WMMA-DAG: s_cselect_b32 {{s[0-9]+}}, 0x44, 0
// WMMA-DAG: s_cselect_b32 {{s[0-9]+}}, {{s[0-9]+}}, 0x88
// WMMA-DAG: s_cselect_b32 {{s[0-9]+}}, 0xe4,
// WMMA:     s_lshr_b32
// WMMA:     v_wmma

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
