// Products in pairs on the CPU: the innermost loop loads three vectors of the image, broadcasts
// eight pairs of the gradient and multiplies; sums stay in registers.

// RUN: %conv_compiler inspect --target cpu-znver4 --strategy cpu_dot --tile 8x1x3x16 --stage isa \
// RUN:   -n 8 -k 64 -c 64 --image 14x14 --filter 3x3 --pad 1 --dtype bf16 > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           vbroadcastss
// CHECK-NOT:       {{rsp|j[a-z]+}}
// CHECK-COUNT-24:  vdpbf16ps
// CHECK-NOT:       {{rsp|vmov|vdpbf16ps}}
// CHECK:           cmpq
// CHECK-NEXT:      j{{ne|b}}
// CHECK-NOT:       vdpbf16ps
