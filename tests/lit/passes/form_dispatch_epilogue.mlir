// An elementwise op on sums that are the result goes into the contraction's dispatch, in its shape.

// RUN: %conv_opt %s --pass form-dispatch | %filecheck

// CHECK:      %[[D:[a-z]+]] = tensor.collapse_shape %arg2 {{.*}} into tensor<5x3x7xf32>
// CHECK-NEXT: flow.dispatch.region -> (tensor<5x3x7xf32>) {
// CHECK:        conv_compiler.role = "contraction"
// CHECK:        linalg.generic {{.*}} ins(%{{[0-9]+}}, %[[D]] : tensor<5x3x7xf32>, {{.*}}conv_compiler.role = "epilogue"
// CHECK:        flow.return
// CHECK:      tensor.expand_shape
// CHECK-NEXT: return

#image = affine_map<(k, x, c, n, wo) -> (n, c, wo + x)>
#gradient = affine_map<(k, x, c, n, wo) -> (n, k, wo)>
#weight = affine_map<(k, x, c, n, wo) -> (k, x, c)>
#same = affine_map<(g, k, x, c) -> (g, k, x, c)>
func.func @main(%image: tensor<4x7x12xf32>, %gradient: tensor<4x5x10xf32>,
    %d: tensor<1x5x3x7xf32>) -> tensor<1x5x3x7xf32> {
  %none = tensor.empty() : tensor<5x3x7xf32>
  %cst = arith.constant 0.0 : f32
  %zero = linalg.fill ins(%cst : f32) outs(%none : tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  %sums = linalg.generic {
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
  %all = tensor.expand_shape %sums [[0, 1], [2], [3]] output_shape [1, 5, 3, 7]
      : tensor<5x3x7xf32> into tensor<1x5x3x7xf32>
  %out = tensor.empty() : tensor<1x5x3x7xf32>
  %done = linalg.generic {
      indexing_maps = [#same, #same, #same],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%all, %d : tensor<1x5x3x7xf32>, tensor<1x5x3x7xf32>)
      outs(%out : tensor<1x5x3x7xf32>) attrs = {conv_compiler.role = "epilogue"} {
  ^bb0(%s: f32, %t: f32, %unused: f32):
    %total = arith.addf %s, %t : f32
    linalg.yield %total : f32
  } -> tensor<1x5x3x7xf32>
  return %done : tensor<1x5x3x7xf32>
}
