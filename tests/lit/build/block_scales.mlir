// Operands with block scales: a kernel for each makes bf16 of elements and scales, in front of a
// contraction that knows nothing of them. Scales are operands behind, of one byte a block.

// RUN: %conv_compiler inspect --stage payload -n 2 -g 2 -k 5 -c 64 --image 9x8 --filter 3x2 \
// RUN:   --dtype f8E4M3FN --direction fwd --block-scales mx --target gfx950 | %filecheck
// RUN: %conv_compiler inspect --stage payload -n 32 -k 5 -c 3 --image 9 --filter 2 --layout NCW \
// RUN:   --dtype f8E5M2 --block-scales mx --target gfx950 | %filecheck --check-prefix=IMAGES

// CHECK: func.func @main(%[[X:.+]]: tensor<2x9x8x2x64xf8E4M3FN>, %{{.+}}: tensor<2x5x3x2x64xf8E4M3FN>, %[[S:.+]]: tensor<2x9x8x2x2xi8>, %{{.+}}: tensor<2x5x3x2x2xi8>)
// CHECK-SAME: conv_compiler.operands = "input,weight,input_scales,weight_scales"
// CHECK: %[[BLOCKS:.+]] = tensor.expand_shape %[[X]] {{.*}} into tensor<2x9x8x2x2x32xf8E4M3FN>
// CHECK: flow.dispatch.region -> (tensor<2x9x8x2x2x32xbf16>)
// CHECK: linalg.generic {{.*}} ins(%[[BLOCKS]], %[[S]] : tensor<2x9x8x2x2x32xf8E4M3FN>, tensor<2x9x8x2x2xi8>)
// The element by its bits, times two halves of its scale; the code 255 is NaN.
// CHECK: arith.bitcast {{.*}} : f8E4M3FN to i8
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: %[[PRODUCT:.+]] = arith.mulf {{.*}} : f32
// CHECK: arith.cmpi eq, %{{.+}}, %c255_i32
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: tensor.collapse_shape {{.*}} into tensor<2x9x8x2x64xbf16>
// CHECK: flow.dispatch.region -> (tensor<2x5x3x2x2x32xbf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x9x8x2x64xbf16>, tensor<2x5x3x2x64xbf16>)
// CHECK-SAME: conv_compiler.role = "contraction"

// Of a weight gradient a block is 32 images of one pixel and channel.
// IMAGES: tensor<1x3x9xi8>, %{{.+}}: tensor<1x5x8xi8>)
// IMAGES: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<1x32x3x9xf8E5M2>, tensor<1x3x9xi8>)
