// The PTX of a weight gradient by wave groups: operands are copied to shared memory by themselves,
// what is no pixel as zeros; both are multiplied from there as they lie. Sums are stored in vectors,
// by way of shared memory. A second kernel adds the parts. No local memory, no branch but loops'.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_gemm --split-k 4 --tile 128x128x64 \
// RUN:   -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_gemm --split-k 1 --tile 64x128x64 \
// RUN:   -n 3 -g 2 -k 56 -c 72 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 \
// RUN:   --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// ROUND:     .target sm_90a
// ROUND:     .visible .entry parts_sum(
// ROUND:     ld.global.nc.v4.b32
// ROUND:     st.global.v2.b32
// ROUND:     .visible .entry wgmma_gemm(
// ROUND:     .maxntid 256
// ROUND-COUNT-8: cp.async.cg.shared.global
// ROUND:     cp.async.commit_group;
// ROUND:     wgmma.wait_group.sync.aligned 1;
// ROUND:     cp.async.wait_group 3;
// ROUND:     fence.proxy.async.shared::cta;
// ROUND:     bar.sync
// ROUND:     wgmma.fence.sync.aligned;
// ROUND-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// ROUND:     wgmma.commit_group.sync.aligned;
// ROUND-COUNT-8: cp.async.cg.shared.global
// ROUND-NOT: cp.async.cg
// ROUND:     wgmma.wait_group.sync.aligned 0;
// ROUND:     st.shared.v2
// ROUND:     bar.sync
// ROUND:     ld.shared.v4
// ROUND:     st.global.v4.b32
// ROUND:     ret;

// A rest of both sides is not stored, and the result is: in bf16, eight at a time.
// ODD:     .target sm_90a
// ODD-NOT: parts_sum
// ODD:     .visible .entry wgmma_gemm(
// ODD:     wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// ODD:     cvt.rn.bf16x2.f32
// ODD:     st.global.v4.b32
// ODD:     ret;

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
