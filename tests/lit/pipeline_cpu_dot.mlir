// Products in pairs on the CPU: the innermost loop loads three vectors of the image, broadcasts
// eight pairs of the gradient and multiplies; sums stay in registers. Each register tile asks for
// lines of the next copies before.

// RUN: %conv_compiler inspect --target cpu-znver4 --strategy cpu_dot --tile 8x1x3x16 --stage isa \
// RUN:   -n 16 -k 64 -c 64 --image 28x28 --filter 3x3 --pad 1 --dtype bf16 > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK-COUNT-4:   prefetcht0
// CHECK:           vbroadcastss
// CHECK-NOT:       {{rsp|j[a-z]+}}
// CHECK-COUNT-24:  vdpbf16ps
// CHECK-NOT:       {{rsp|vmov|vdpbf16ps}}
// CHECK:           cmpq
// CHECK-NEXT:      j{{ne|b}}
// CHECK-NOT:       vdpbf16ps
