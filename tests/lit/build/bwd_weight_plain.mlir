// What is not needed is not there: no pad op without pads, no reshape without folding.

// RUN: %conv_compiler inspect --stage payload -n 2 -k 4 -c 5 --image 6x7 --filter 3x2 --dtype f32 \
// RUN:   | %filecheck

// CHECK-NOT: tensor.pad
// CHECK-NOT: shape
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<2x6x7x1x5xf32>, tensor<2x4x6x1x4xf32>)
// CHECK-SAME: outs({{.*}} : tensor<1x4x3x2x5xf32>)
