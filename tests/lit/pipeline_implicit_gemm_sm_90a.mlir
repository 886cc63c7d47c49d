// The PTX of an implicit GEMM on sm_90a, whose target the module states: matrix instructions fed
// from shared memory, no local memory (where spills would go).

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy implicit_gemm \
// RUN:   -n 16 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=ROUND
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_90a --strategy implicit_gemm \
// RUN:   -n 3 -g 2 -k 23 -c 13 --image 11x13 --filter 3x3 --stride 2 --pad 1 --dtype bf16 > %t
// RUN: %filecheck --input-file %t --check-prefix=ODD
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// ROUND: .target sm_90a
// ROUND: .visible .entry main_dispatch_0
// ROUND: ld.shared
// ROUND: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// ROUND: ret;

// ODD: .target sm_90a
// ODD: .visible .entry main_dispatch_0
// ODD: ld.shared
// ODD: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// ODD: ret;

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
