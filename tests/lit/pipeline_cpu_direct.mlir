// The innermost loop of a direct convolution on a CPU with AVX2: five pixels (the first tile of a row,
// whose first pixel has no left tap) by two vectors of result channels, four source channels an
// iteration. Sums stay in registers.

// RUN: %conv_compiler inspect --strategy cpu_direct --tile 6x16 --stage isa --target cpu-x86-64-v3 \
// RUN:   -n 2 -k 64 -c 64 --image 56x56 --filter 3x3 --pad 1 --dtype f32 --direction fwd > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           vbroadcastss
// CHECK-NOT:       {{rsp|[[:space:]]j[a-z]+|call}}
// CHECK-COUNT-40:  vfmadd{{[0-9]+}}ps
// CHECK-NOT:       rsp
// CHECK:           jne
