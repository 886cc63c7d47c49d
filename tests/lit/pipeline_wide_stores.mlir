// Results whose innermost axis is a kernel's rows: a lane stores its adjacent sums at once, whether
// the tiles are full or have a rest, by one kernel, without scratch.

// Channels and pixels that no tile divides, of two bytes: four channels at once.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 1 -n 2 -k 92 -c 64 --image 15x13 --filter 1x1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=REST
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx90a --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 1 -n 16 -k 64 -c 64 --image 8x8 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=REST
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx950 --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 1 -n 16 -k 64 -c 64 --image 8x8 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=REST
// RUN: %filecheck --input-file %t --check-prefix=NONE

// Two channels at once where rows of the result are no multiple of four.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 1 -n 2 -k 90 -c 64 --image 15x13 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=TWO
// RUN: %filecheck --input-file %t --check-prefix=NONE

// Partial sums of four bytes.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy implicit_gemm --direction fwd \
// RUN:   --split-k 2 -n 2 -k 90 -c 512 --image 15x13 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=PARTS

// Eight channels of a lane of gfx12.
// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy implicit_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 2 -k 64 -c 88 --image 15x13 --filter 1x1 > %t
// RUN: %filecheck --input-file %t --check-prefix=EIGHT
// RUN: %filecheck --input-file %t --check-prefix=NONE

// REST: main_dispatch_0_matmul_like{{.*}}:
// REST: v_mfma
// REST-NOT: buffer_store_{{short|dword }}
// REST: buffer_store_dwordx2
// REST-NOT: buffer_store_{{short|dword }}
// REST: s_endpgm
// REST-NOT: main_dispatch_1

// TWO: main_dispatch_0_matmul_like{{.*}}:
// TWO: v_mfma
// TWO-NOT: buffer_store_short
// TWO: buffer_store_dword
// TWO-NOT: buffer_store_short
// TWO: s_endpgm
// TWO-NOT: main_dispatch_1

// PARTS: main_dispatch_0_matmul_like{{.*}}:
// PARTS: v_mfma
// PARTS-NOT: buffer_store_{{short|dword }}
// PARTS: buffer_store_dwordx4
// PARTS: s_endpgm

// EIGHT: main_dispatch_0_matmul_like{{.*}}:
// EIGHT: v_wmma
// EIGHT-NOT: buffer_store_b{{16|32|64}}
// EIGHT: buffer_store_b128
// EIGHT-NOT: buffer_store_b{{16|32|64}}
// EIGHT: s_endpgm
// EIGHT-NOT: main_dispatch_1

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
