// A direct convolution by AMX: LLVM configures the registers once, the innermost loop loads a tile of
// pixels as they lie and four of packed weights, and multiplies them; no tile of sums leaves its
// register.

// RUN: %conv_compiler inspect --target cpu-sapphirerapids --strategy cpu_amx_direct --tile 14x64 \
// RUN:   --stage isa -n 2 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 --dtype bf16 \
// RUN:   --direction fwd > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           ldtilecfg
// CHECK-NOT:       ldtilecfg
// CHECK-COUNT-4:   tilezero
// CHECK:           tileloadd
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|tilestored}}
// CHECK:           tileloadd
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|tilestored}}
// CHECK:           tdpbf16ps
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|tilestored}}
// CHECK:           tdpbf16ps
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|tilestored}}
// CHECK:           tdpbf16ps
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|tilestored}}
// CHECK:           tdpbf16ps
// CHECK:           j{{ne|b}}
// CHECK-COUNT-4:   tilestored
// CHECK:           tilerelease
