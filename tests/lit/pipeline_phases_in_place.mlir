// A strided data gradient in one part: the matrix kernel is the last one, and its lanes store adjacent
// channels at once where the phases have their places. No scratch, no spills. Chips with MFMA and
// with WMMA.

// Of one tap and stride 2 three of four pixels are zeros, which the kernel stores too: of four
// stores one has sums.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 64 -c 96 --image 14x14 --filter 1x1 --stride 2 > %t
// RUN: %filecheck --input-file %t --check-prefix=MFMA
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 64 -c 96 --image 14x14 --filter 1x1 --stride 2 > %t
// RUN: %filecheck --input-file %t --check-prefix=WMMA
// RUN: %filecheck --input-file %t --check-prefix=NONE

// Phases of an image of odd sizes, behind the kernel that arranges the weight.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 16 -k 64 -c 96 --image 13x15 --filter 3x3 --pad 1 \
// RUN:   --stride 2 > %t
// RUN: %filecheck --input-file %t --check-prefix=WINDOW
// RUN: %filecheck --input-file %t --check-prefix=NONE

// MFMA: main_dispatch_0_matmul_like{{.*}}:
// MFMA: v_mfma
// MFMA-NOT: buffer_store_{{short|dword }}
// MFMA-COUNT-4: buffer_store_dwordx2
// MFMA-NOT: buffer_store_{{short|dword }}
// MFMA: s_endpgm
// MFMA-NOT: main_dispatch_1

// WMMA: main_dispatch_0_matmul_like{{.*}}:
// WMMA: v_wmma
// WMMA-NOT: buffer_store_b{{16|32|64}}
// WMMA-COUNT-4: buffer_store_b128
// WMMA-NOT: buffer_store_b{{16|32|64}}
// WMMA: s_endpgm
// WMMA-NOT: main_dispatch_1

// WINDOW: main_dispatch_1_matmul_like{{.*}}:
// WINDOW: v_mfma
// WINDOW-NOT: buffer_store_{{short|dword }}
// WINDOW: buffer_store_dwordx2
// WINDOW-NOT: buffer_store_{{short|dword }}
// WINDOW: s_endpgm
// WINDOW-NOT: main_dispatch_2

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
