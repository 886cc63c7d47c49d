// A direct convolution by pairs of source channels: seven pixels by two vectors of result channels,
// four pairs an iteration; a pair is broadcast as 32 bits, and sums stay in registers. One
// instruction rounds a vector of them.

// RUN: %conv_compiler inspect --target cpu-znver4 --strategy cpu_dot_direct --tile 7x32 --stage isa \
// RUN:   -n 8 -k 64 -c 64 --image 7x7 --filter 3x3 --pad 1 --dtype bf16 --direction fwd > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           {{vpbroadcastd|vbroadcastss}}
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|call}}
// CHECK-COUNT-48:  vdpbf16ps
// CHECK-NOT:       rsp
// CHECK:           j{{ne|b}}
// CHECK-COUNT-14:  vcvtneps2bf16
