// The PTX of a forward pass and of a data gradient of small groups by wave groups: windows and
// weights are copied to shared memory by themselves, what is no pixel as zeros. An instruction has
// the eight channels of one group at two taps, and a ninth tap meets zeros. Results are rounded on their way to
// shared memory, and stored 16 bytes a thread. No local memory.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_windows --tile 1x16x16 --direction fwd \
// RUN:   -n 32 -g 32 -k 8 -c 8 --image 28x28 --filter 3x3 --pad 1 --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=FWD
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy wgmma_windows --tile 1x8x8 --direction bwd_data \
// RUN:   -n 3 -g 8 -k 16 -c 8 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 \
// RUN:   --layout NHWGC_GKYXC_NHWGK > %t
// RUN: %filecheck --input-file %t --check-prefix=DATA
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// FWD:     .target sm_90a
// FWD:     .visible .entry wgmma_windows(
// FWD:     st.shared.v4
// FWD:     cp.async.cg.shared.global
// FWD:     fence.proxy.async.shared::cta;
// FWD:     wgmma.fence.sync.aligned;
// FWD-COUNT-10: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0, 0;
// FWD:     wgmma.wait_group.sync.aligned 0;
// FWD:     cvt.rn.f16x2.f32
// FWD:     st.shared.b32
// FWD:     bar.warp.sync
// FWD:     st.global.v4.b32
// FWD-NOT: .entry

// The source has sixteen channels: two pieces of one tap are an instruction.
// DATA:     .target sm_90a
// DATA:     .visible .entry wgmma_windows(
// DATA:     cp.async.cg.shared.global
// DATA-COUNT-9: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, 1;
// DATA:     cvt.rn.bf16x2.f32

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
