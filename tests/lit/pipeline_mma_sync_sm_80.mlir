// The PTX of kernels of waves: operands are copied to shared memory by themselves, what is no pixel
// as zeros. Waves read fragments, transposed where lines of shared memory lie along rows or columns.
// Fragments of the next step are read before those of this one are multiplied. No local memory.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_80 --strategy mma_sync_gemm --split-k 4 --tile 128x128x32 \
// RUN:   -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=WEIGHT
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_86 --strategy mma_sync_pixels --split-k 1 --tile 64x64x64 --direction fwd \
// RUN:   -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 --dtype bf16 \
// RUN:   --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=FWD
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_89 --strategy mma_sync_pixels --split-k 2 --tile 64x64x64 \
// RUN:   --direction bwd_data -n 3 -g 2 -k 100 -c 72 --image 11x13 --filter 3x3 --stride 2 --pad 1 \
// RUN:   --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=DATA
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_100a --split-k 2 \
// RUN:   -n 32 -k 256 -c 256 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=B200
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_120a --direction fwd --dtype bf16 \
// RUN:   -n 32 -k 256 -c 256 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=RTX
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// Four steps of sixteen pixels and four fragments each: A and B of 64 rows and 64 columns.
// WEIGHT:     .target sm_80
// WEIGHT:     .visible .entry parts_sum(
// WEIGHT:     .visible .entry mma_sync_gemm(
// WEIGHT:     .maxntid 128
// WEIGHT-COUNT-24: cp.async.cg.shared.global
// WEIGHT-COUNT-8: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// WEIGHT-COUNT-8: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// WEIGHT-COUNT-64: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// WEIGHT-NOT: mma.sync
// WEIGHT:     cp.async.wait_group 2;
// WEIGHT-NOT: fence.proxy
// WEIGHT:     bar.sync
// WEIGHT-COUNT-8: cp.async.cg.shared.global
// WEIGHT-NOT: cp.async.cg
// WEIGHT:     st.shared.v2
// WEIGHT:     bar.sync
// WEIGHT:     ld.shared.v4
// WEIGHT:     st.global.v4.b32
// WEIGHT:     ret;

// FWD:     .target sm_86
// FWD:     .visible .entry mma_sync_pixels(
// FWD:     cp.async.cg.shared.global
// FWD-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// FWD-NOT: .trans
// FWD:     mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// FWD:     cvt.rn.bf16x2.f32
// FWD:     st.shared.b32
// FWD:     st.global.v4.b32
// FWD:     ret;

// The source lies along gemm_k, the weight of a data gradient along its columns.
// DATA:     .target sm_89
// DATA-DAG: .visible .entry whole_source(
// DATA-DAG: .visible .entry parts_sum(
// DATA-DAG: .visible .entry mma_sync_pixels(
// DATA-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// DATA-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// DATA-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

// Chips without wave groups take these kernels unasked.
// B200:     .target sm_100a
// B200:     .visible .entry mma_sync_gemm(
// B200:     cp.async.cg.shared.global
// B200:     ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// B200:     mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// B200-NOT: wgmma
// RTX:      .target sm_120a
// RTX:      .visible .entry mma_sync_pixels(
// RTX:      cp.async.cg.shared.global
// RTX:      ldmatrix.sync.aligned.m8n8.x4.shared.b16
// RTX:      mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// RTX-NOT:  wgmma

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
