// A depthwise convolution with pixels in the lanes: sums of several rows stay in registers, and a
// vector of the copy on the stack is multiplied for all of them.

// RUN: %conv_compiler inspect --strategy cpu_planes --tile 4x32 --stage isa \
// RUN:   --target cpu-x86-64-v4 -n 8 -g 32 -k 1 -c 1 --image 112x112 --filter 3x3 --pad 1 \
// RUN:   --dtype f32 --direction fwd --layout NGCHW_GKCYX_NGKHW > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           vfmadd{{[0-9]+}}ps
// CHECK-NOT:       {{[[:space:]]j[a-z]+|call}}
// CHECK-COUNT-59:  vfmadd{{[0-9]+}}ps
