// The PTX of a weight gradient of small groups by waves: the window and the output gradient are
// copied to shared memory by themselves, what is no pixel as zeros. Blocks are transposed on their
// way to registers. No local memory.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_80 --strategy mma_sync_windows --tile 1x4x28 --split-k 32 \
// RUN:   -n 32 -g 32 -k 8 -c 8 --image 28x28 --filter 3x3 --pad 1 --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %filecheck --input-file %t --check-prefix=COPY
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_80 --strategy mma_sync_windows --tile 1x7x13 --split-k 1 --dtype bf16 \
// RUN:   -n 3 -g 8 -k 4 -c 4 --image 11x13 --filter 3x3 --pad 1 --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=JOINED
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// CHECK:     .target sm_80
// CHECK:     .visible .entry parts_sum(
// CHECK:     .visible .entry mma_sync_windows(
// Seven steps of sixteen pixels, five pairs of nine taps.
// CHECK-COUNT-35: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: .entry

// COPY: cp.async.cg.shared.global [{{.*}}], 16, {{.*}};

// Groups of four channels are joined in twos. A lane stores what belongs to one group, rounded.
// JOINED:     .visible .entry mma_sync_windows(
// JOINED:     ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// JOINED:     mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// JOINED:     st.global.b16

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
// LOCAL:     cp.async.wait_group 0;
// LOCAL-NOT: .local
// LOCAL-NOT: fence.proxy
