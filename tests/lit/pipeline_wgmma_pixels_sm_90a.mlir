// The PTX of a forward pass and of a data gradient by wave groups: operands are copied to shared
// memory by themselves, what is no pixel as zeros. The instructions take the source and the weight
// of a forward pass along gemm_k (0), and the weight of a data gradient as it lies (1). Results are
// rounded on their way to shared memory, and stored 16 bytes a thread. No local memory.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --split-k 1 --tile 128x128x64 --direction fwd \
// RUN:   -n 16 -k 128 -c 128 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=FWD
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --split-k 2 --tile 64x128x64 --direction bwd_data \
// RUN:   -n 3 -g 2 -k 100 -c 72 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 \
// RUN:   --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=DATA
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --tile 64x64x64 --direction fwd \
// RUN:   -n 32 -g 32 -k 16 -c 16 --image 14x14 --filter 3x3 --pad 1 --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=GROUPS
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --tile 64x128x64 --direction bwd_data \
// RUN:   -n 32 -k 128 -c 256 --image 56x56 --filter 1x1 --layout NHWC_KYXC_NHWK > %t
// RUN: %filecheck --input-file %t --check-prefix=STAYS
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --split-k 1 --tile 128x128x128 --direction fwd \
// RUN:   -n 16 -k 128 -c 256 --image 14x14 --filter 3x3 --pad 1 --layout NHWC_KYXC_NHWK \
// RUN:   --dtype i8 > %t
// RUN: %filecheck --input-file %t --check-prefix=I8
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_pixels --split-k 1 --tile 64x128x128 \
// RUN:   --direction bwd_data -n 16 -k 256 -c 100 --image 14x14 --filter 3x3 --pad 1 \
// RUN:   --layout NHWC_KYXC_NHWK --dtype f8E4M3FN --weight-dtype f8E5M2 > %t
// RUN: %filecheck --input-file %t --check-prefix=F8
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// FWD:     .target sm_90a
// FWD:     .visible .entry wgmma_pixels(
// FWD:     .maxntid 256
// FWD-COUNT-8: cp.async.cg.shared.global
// FWD:     cp.async.commit_group;
// FWD:     wgmma.wait_group.sync.aligned 1;
// FWD:     fence.proxy.async.shared::cta;
// FWD:     bar.sync
// FWD:     wgmma.fence.sync.aligned;
// FWD-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 0;
// FWD:     wgmma.commit_group.sync.aligned;
// FWD-COUNT-8: cp.async.cg.shared.global
// FWD-NOT: cp.async.cg
// FWD:     wgmma.wait_group.sync.aligned 0;
// FWD:     cvt.rn.f16x2.f32
// FWD:     st.shared.b32
// FWD:     bar.sync
// FWD:     ld.shared.v4
// FWD:     st.global.v4.b32
// FWD:     ret;
// FWD-NOT: .entry

// 100 channels are copied as 104. Two parts of sums in f32 are added by the kernel that rounds them.
// DATA:     .target sm_90a
// DATA-DAG: .visible .entry whole_source(
// DATA-DAG: .visible .entry parts_sum(
// DATA-DAG: cvt.rn.bf16x2.f32
// DATA-DAG: .visible .entry wgmma_pixels(
// DATA-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, 1;

// Four groups share a tile. Each has an instruction of its own, on its own columns.
// GROUPS: wgmma.fence.sync.aligned;
// GROUPS-COUNT-4: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
// GROUPS-NOT: wgmma.mma_async
// GROUPS: wgmma.commit_group.sync.aligned;

// The weight of both tiles of gemm_k is copied in front of the loop, in four times four and as many
// pieces a thread. A step of the loop copies a later tile of the source alone. A wave stores its rows.
// STAYS:    .visible .entry wgmma_pixels(
// STAYS:    .maxntid 128
// STAYS-COUNT-20: cp.async.cg.shared.global
// STAYS:    cp.async.commit_group;
// STAYS:    st.shared.b32
// STAYS:    bar.warp.sync
// STAYS:    st.global.v4.b32
// STAYS:    bar.sync
// STAYS-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 1;
// STAYS-COUNT-4: cp.async.cg.shared.global
// STAYS-NOT: cp.async.cg
// STAYS:    bar.sync
// STAYS-COUNT-4: wgmma.mma_async
// STAYS-COUNT-4: cp.async.cg.shared.global
// STAYS-NOT: cp.async.cg
// STAYS:    ret;

// 8-bit types: 32 of gemm_k by an instruction, which has no way to transpose an operand. Integers have no
// factors either.
// I8:     .visible .entry wgmma_pixels(
// I8:     .maxntid 256
// I8:     fence.proxy.async.shared::cta;
// I8-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {{.*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, 1;
// I8:     st.shared.v2.b32
// I8:     st.global.v4.b32

// The weight of a data gradient is transposed in front. Floats of a tile are summed up apart: the first
// instruction adds to nothing, and f32 additions follow the wait, which is the block in front. Two
// results are rounded at a time.
// F8:     .visible .entry wgmma_pixels(
// F8:     wgmma.wait_group.sync.aligned 0;
// F8-COUNT-64: add.rn.f32
// F8-NOT: add.rn.f32
// F8:     wgmma.fence.sync.aligned;
// F8:     wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {{.*}}, 0, 1, 1;
// F8-COUNT-3: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {{.*}}, 1, 1, 1;
// F8-NOT: wgmma.mma_async
// F8:     wgmma.commit_group.sync.aligned;
// F8:     cvt.rn.satfinite.e5m2x2.f32
// F8:     .visible .entry transposed_weight(

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
