// Code for CPUs by name has their vectors and no wider ones: of SSE without fused multiply-adds, of
// AVX2 with, of AVX-512, and of Advanced SIMD. It is the same on every host.

// RUN: %conv_compiler inspect --target cpu-x86-64-v2 --stage isa \
// RUN:   -n 4 -k 32 -c 32 --image 14x14 --filter 3x3 --pad 1 --dtype f32 > %t
// RUN: %filecheck --check-prefix SSE --input-file %t
// RUN: %conv_compiler inspect --target cpu-x86-64-v3 --stage isa \
// RUN:   -n 4 -k 32 -c 32 --image 14x14 --filter 3x3 --pad 1 --dtype f32 > %t
// RUN: %filecheck --check-prefix AVX2 --input-file %t
// RUN: %conv_compiler inspect --target cpu-x86-64-v3 --stage isa \
// RUN:   -n 3 -g 2 -k 7 -c 5 --image 11x13 --filter 3x2 --stride 2x1 --dtype bf16 > %t
// RUN: %filecheck --check-prefix AVX2 --input-file %t
// RUN: %conv_compiler inspect --target cpu-x86-64-v4 --stage isa \
// RUN:   -n 4 -k 32 -c 32 --image 14x14 --filter 3x3 --pad 1 --dtype f32 > %t
// RUN: %filecheck --check-prefix AVX512 --input-file %t
// RUN: %conv_compiler inspect --target cpu-neoverse-v1 --stage isa \
// RUN:   -n 4 -k 32 -c 32 --image 14x14 --filter 3x3 --pad 1 --dtype f32 > %t
// RUN: %filecheck --check-prefix ARM --input-file %t

// SSE-NOT:  {{[yz]mm|vfmadd|call.*fmaf}}
// SSE:      mulps {{.*}}%xmm
// SSE-NOT:  {{[yz]mm|vfmadd|call.*fmaf}}

// AVX2-NOT: %zmm
// AVX2:     vfmadd{{.*}}%ymm
// AVX2-NOT: %zmm

// AVX512:   vfmadd{{.*}}%zmm

// ARM:      fmla v{{[0-9]+}}.4s
