// Channels first: kernels copy the operands channels last, 16 bytes at a time, and the kernel of the
// GEMM reads whole vectors and stores adjacent pixels of the result together, without scratch.

// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy channels_last_gemm \
// RUN:   --direction fwd --split-k 1 -n 2 -k 64 -c 64 --image 16x12 --filter 3x3 --pad 1 \
// RUN:   --layout NGCHW_GKCYX_NGKHW > %t
// RUN: %filecheck --input-file %t --check-prefix=COPY
// RUN: %filecheck --input-file %t --check-prefix=FOUR
// RUN: %filecheck --input-file %t --check-prefix=NONE
// RUN: %conv_compiler inspect --stage isa --target gfx1201 --strategy channels_last_gemm \
// RUN:   --direction bwd_data --split-k 1 -n 2 -k 64 -c 64 --image 16x16 --filter 3x3 --pad 1 \
// RUN:   --layout NGCHW_GKCYX_NGKHW > %t
// RUN: %filecheck --input-file %t --check-prefix=EIGHT
// RUN: %filecheck --input-file %t --check-prefix=NONE

// Partial sums of four bytes, in the order of the result.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy channels_last_gemm \
// RUN:   --direction fwd --split-k 2 -n 2 -k 64 -c 512 --image 8x8 --filter 1x1 \
// RUN:   --layout NGCHW_GKCYX_NGKHW > %t
// RUN: %filecheck --input-file %t --check-prefix=PARTS

// Three channels become four: two pixels of eight bytes each are stored at once, and read by eight.
// RUN: %conv_compiler inspect --stage isa --target gfx942 --strategy channels_last_gemm \
// RUN:   --direction fwd --split-k 1 -n 2 -k 64 -c 3 --image 32x32 --filter 7x7 --stride 2 --pad 3 \
// RUN:   --layout NGCHW_GKCYX_NGKHW > %t
// RUN: %filecheck --input-file %t --check-prefix=FEW
// RUN: %filecheck --input-file %t --check-prefix=NONE

// COPY: main_dispatch_0:
// COPY-NOT: buffer_load_ushort
// COPY-COUNT-8: buffer_load_dwordx4
// COPY-NOT: buffer_store_short
// COPY-COUNT-8: buffer_store_dwordx4
// COPY: s_endpgm

// FOUR: main_dispatch_2_matmul_like{{.*}}:
// FOUR-NOT: buffer_load_{{ushort|dword }}
// FOUR: buffer_load_dwordx4
// FOUR-NOT: buffer_load_{{ushort|dword }}
// FOUR: v_mfma
// FOUR-NOT: buffer_store_{{short|dword }}
// FOUR: buffer_store_dwordx2
// FOUR-NOT: buffer_store_{{short|dword }}
// FOUR: s_endpgm

// EIGHT: main_dispatch_{{[0-9]}}_matmul_like{{.*}}:
// EIGHT-NOT: buffer_load_{{u16|d16_b16}}
// EIGHT: v_wmma
// EIGHT-NOT: buffer_store_b{{16|32|64}}
// EIGHT: buffer_store_b128
// EIGHT-NOT: buffer_store_b{{16|32|64}}
// EIGHT: s_endpgm

// PARTS: matmul_like{{.*}}:
// PARTS: v_mfma
// PARTS-NOT: buffer_store_{{short|dword }}
// PARTS: buffer_store_dwordx4
// PARTS: s_endpgm

// FEW: main_dispatch_0:
// FEW: buffer_store_dwordx4
// FEW: s_endpgm
// FEW: matmul_like{{.*}}:
// FEW-NOT: buffer_load_ushort
// FEW: buffer_load_dwordx2
// FEW: v_mfma
// FEW: s_endpgm

// NONE-NOT: scratch_{{load|store}}
// NONE-NOT: .private_segment_fixed_size: {{[1-9]}}
// NONE-NOT: .vgpr_spill_count: {{[1-9]}}
// NONE:     .end_amdgpu_metadata
