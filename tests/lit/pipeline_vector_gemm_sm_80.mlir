// The PTX of vector code on sm_80: fused multiply-adds in registers, no shared or local memory.

// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_80 --strategy vector_gemm \
// RUN:   -n 8 -g 32 -k 1 -c 1 --image 16x16 --filter 3x3 --pad 1 > %t
// RUN: %filecheck --input-file %t --check-prefix=FMA
// RUN: %filecheck --input-file %t --check-prefix=LOCAL
// RUN: %conv_compiler inspect --stage isa \
// RUN:   --target sm_80 --strategy vector_gemm \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --pad 1x0 --dtype f32 > %t
// RUN: %filecheck --input-file %t --check-prefix=FMA
// RUN: %filecheck --input-file %t --check-prefix=LOCAL

// FMA: .visible .entry main_dispatch_0
// FMA: fma.rn.f32
// FMA: ret;

// LOCAL-NOT: .local
// LOCAL:     .visible .entry
// LOCAL-NOT: .local
// LOCAL-NOT: .shared
// LOCAL-NOT: mma.sync
