// Sums in tiles of AMX: LLVM configures the registers once, the innermost loop loads two tiles of
// either operand and multiplies them; none is spilled.

// RUN: %conv_compiler inspect --target cpu-sapphirerapids --strategy cpu_amx --tile 32x1x1x32 --stage isa \
// RUN:   -n 8 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 --dtype bf16 > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// RUN: %conv_compiler inspect --target cpu-sapphirerapids --strategy cpu_amx --stage isa \
// RUN:   -n 8 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 --dtype i8 | %filecheck --check-prefix=I8

// CHECK:           ldtilecfg
// CHECK-NOT:       ldtilecfg
// CHECK-COUNT-4:   tilestored
// Kept sums, then factors.
// CHECK-COUNT-4:   tileloadd {{.*}}, %tmm{{[0-3]}}
// CHECK-COUNT-4:   tileloadd {{.*}}, %tmm{{[4-7]}}
// CHECK-NOT:       {{rsp|j[a-z]+|tileloadd}}
// CHECK-COUNT-4:   tdpbf16ps
// CHECK-NOT:       {{rsp|tilestored}}
// CHECK:           j{{ne|b}}
// CHECK-COUNT-4:   tilestored
// CHECK-NOT:       tdpbf16ps
// CHECK:           tilerelease

// I8-COUNT-4: tdpbssd
