// A depthwise convolution with pixels in the lanes: sums of several rows stay in registers, and a
// vector of the copy on the stack is multiplied for all of them.

// RUN: %conv_compiler inspect --strategy cpu_planes --tile 1x4x32 --stage isa \
// RUN:   --target cpu-x86-64-v4 -n 8 -g 32 -k 1 -c 1 --image 112x112 --filter 3x3 --pad 1 \
// RUN:   --dtype f32 --direction fwd --layout NGCHW_GKCYX_NGKHW > %t
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t | %filecheck

// CHECK:           vfmadd{{[0-9]+}}ps
// CHECK-NOT:       {{[[:space:]]j[a-z]+|call}}
// CHECK-COUNT-59:  vfmadd{{[0-9]+}}ps

// Groups of four channels in pairs: the source is riffled on its way to the stack, and no more. 16
// sums of a step have nine taps.

// RUN: %conv_compiler inspect --strategy cpu_planes --tile 4x4x16 --stage isa \
// RUN:   --target cpu-znver4 -n 8 -g 32 -k 4 -c 4 --image 56x56 --filter 3x3 --pad 1 \
// RUN:   --dtype bf16 --direction fwd --layout NGCHW_GKCYX_NGKHW > %t.pairs
// RUN: sed -e '/[.]loc/d' -e '/^[.]Ltmp/d' %t.pairs | %filecheck --check-prefix=PAIRS
// RUN: not grep -E '(unpck|vfmadd).*zmm' %t.pairs

// PAIRS:            vdpbf16ps
// PAIRS-NOT:        {{[[:space:]]j[a-z]+|call}}
// PAIRS-COUNT-143:  vdpbf16ps

// A stride along a row: even and odd pixels of a bf16 row are halves of 32 bits, and lie apart in
// the copy.

// RUN: %conv_compiler inspect --strategy cpu_planes --tile 1x4x32 --stage isa \
// RUN:   --target cpu-znver4 -n 8 -g 32 -k 1 -c 1 --image 112x112 --filter 3x3 --stride 2 --pad 1 \
// RUN:   --dtype bf16 --direction fwd --layout NGCHW_GKCYX_NGKHW > %t.stride
// RUN: %filecheck --input-file %t.stride --check-prefix=STRIDE
// RUN: not grep -E '(vperm|unpck|gather).*zmm' %t.stride

// STRIDE:  vpslld $16
