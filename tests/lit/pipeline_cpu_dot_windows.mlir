// A direct convolution by pairs along a row of taps: three channels by seven taps are 21 elements,
// eleven pairs, of which the last has one element. Four pixels by four vectors of result channels
// stay in registers.

// RUN: %conv_compiler inspect --target cpu-znver4 --strategy cpu_dot_direct --tile 4x64 --stage isa \
// RUN:   -n 8 -k 64 -c 3 --image 224x224 --filter 7x7 --stride 2 --dtype bf16 --direction fwd > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           {{vpbroadcastd|vbroadcastss}}
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|call}}
// CHECK-COUNT-160: vdpbf16ps
// CHECK:           movzwl
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|call}}
// CHECK:           vdpbf16ps
// CHECK-NOT:       rsp
// CHECK:           j{{ne|b}}
// CHECK-NOT:       vpsrld
// CHECK:           vcvtneps2bf16
