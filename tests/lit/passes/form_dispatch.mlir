// The contraction and the tensor it sums into get a dispatch of their own; the gradient becomes
// operand 0.

// RUN: %conv_opt %s --pass 'pad-loops{loops=c sizes=8}' --pass form-dispatch | %filecheck

// CHECK:      flow.dispatch.region -> (tensor<5x3x8xf32>) {
// CHECK-NEXT:   %[[ZERO:.+]] = linalg.fill
// CHECK-NEXT:   linalg.generic {{.*}} ins(%arg1, %{{.+}} : tensor<4x5x10xf32>, tensor<4x8x12xf32>)
// CHECK-SAME:     outs(%[[ZERO]] : tensor<5x3x8xf32>)
// CHECK:        flow.return
// CHECK:      tensor.extract_slice

#image = affine_map<(k, x, c, n, wo) -> (n, c, wo + x)>
#gradient = affine_map<(k, x, c, n, wo) -> (n, k, wo)>
#weight = affine_map<(k, x, c, n, wo) -> (k, x, c)>
func.func @main(%image: tensor<4x7x12xf32>, %gradient: tensor<4x5x10xf32>,
    %zero: tensor<5x3x7xf32>) -> tensor<5x3x7xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<4x7x12xf32>, tensor<4x5x10xf32>)
      outs(%zero : tensor<5x3x7xf32>)
      attrs = {conv_compiler.loops = ["k", "x", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<5x3x7xf32>
  return %weight : tensor<5x3x7xf32>
}
