// Channels first on a CPU with AVX-512: blocks of rows are transposed by shuffles, then the innermost
// loop multiplies by elements broadcast from memory; sums stay in registers.

// RUN: %conv_compiler inspect --strategy cpu_packed --tile 8x1x3x16 --stage isa --target cpu-x86-64-v4 \
// RUN:   -n 8 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 --dtype f32 --layout NGCHW_GKCYX_NGKHW > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK-COUNT-32:  {{vpermt2ps|vpermi2ps|vunpck|vshuff|vperm}}
// CHECK:           vfmadd231ps
// CHECK-NOT:       {{rsp|j[a-z]+|call}}
// CHECK-COUNT-22:  vfmadd231ps
// CHECK-NOT:       rsp
// CHECK:           cmpq
// CHECK-NEXT:      j{{ne|b}}
