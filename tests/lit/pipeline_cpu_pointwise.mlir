// The innermost loop of a 1x1 convolution with pixels in the lanes: eight result channels by three
// vectors of pixels, four source channels an iteration. Sums stay in registers, and the source comes
// from the stack.

// RUN: %conv_compiler inspect --strategy cpu_pointwise --tile 8x48 --stage isa \
// RUN:   --target cpu-x86-64-v4 -n 8 -k 64 -c 64 --image 56x56 --filter 1x1 --dtype f32 \
// RUN:   --direction fwd --layout NGCHW_GKCYX_NGKHW > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           vfmadd{{[0-9]+}}ps
// CHECK-NOT:       {{vmov.*zmm.*rsp|call}}
// CHECK-COUNT-95:  vfmadd{{[0-9]+}}ps
// CHECK-NOT:       {{vmov.*zmm[0-9]+, .*rsp}}
// CHECK:           j{{ne|b}}
