// f32 as high and low parts in bf16: three images in place of one, and one contraction over all.

// RUN: %conv_compiler inspect --stage payload -n 4 -k 16 -c 5 --image 9x8 --filter 3x2 --dtype f32 \
// RUN:   --compute bf16x3 | %filecheck

// CHECK: flow.dispatch.region -> (tensor<3x4x9x8x1x5xbf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.+}} : tensor<4x9x8x1x5xf32>)
// The low part is what is left of the upper half of the bits.
// CHECK: arith.bitcast {{.*}} : f32 to i32
// CHECK: arith.subf
// CHECK: linalg.index 0
// CHECK: tensor.collapse_shape {{.*}} into tensor<12x9x8x1x5xbf16>
// CHECK: flow.dispatch.region -> (tensor<3x4x7x7x1x16xbf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<12x9x8x1x5xbf16>, tensor<12x7x7x1x16xbf16>)
// CHECK-SAME: conv_compiler.role = "contraction"
