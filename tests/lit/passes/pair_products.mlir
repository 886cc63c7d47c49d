// A loop is cut into halves: a summed loop `pair`, innermost. The image is read where it lies, the
// gradient through a view.

// RUN: %conv_opt %s --pass 'pair-products{loop=n}' | %filecheck
// RUN: %conv_opt %s --pass 'pair-products{loop=n products=4}' | %filecheck --check-prefix=FOUR
// RUN: not %conv_opt %s --pass 'pair-products{loop=k}' 2>&1 | %filecheck --check-prefix=SUMMED

// CHECK-DAG:  #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d5 * 2 + d3, d2, d1 + d4)>
// CHECK-DAG:  #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d5, d3, d0, d4)>
// CHECK:      tensor.expand_shape {{.*}} into tensor<2x2x5x10xbf16>
// CHECK:      linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]],
// CHECK-SAME:   conv_compiler.loops = ["k", "x", "c", "n", "wo", "pair"]

// Or into quarters.
// FOUR:       -> (d3 + d5, d2, d1 + d4)>
// FOUR:       tensor.expand_shape {{.*}} into tensor<4x1x5x10xbf16>

// SUMMED: loop k: not a summed loop of 2 parts of as many iterations; pad one of n wo

#image = affine_map<(k, x, c, n, wo) -> (n, c, wo + x)>
#gradient = affine_map<(k, x, c, n, wo) -> (n, k, wo)>
#weight = affine_map<(k, x, c, n, wo) -> (k, x, c)>
func.func @main(%image: tensor<4x7x12xbf16>, %gradient: tensor<4x5x10xbf16>,
    %zero: tensor<5x3x7xf32>) -> tensor<5x3x7xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<4x7x12xbf16>, tensor<4x5x10xbf16>)
      outs(%zero : tensor<5x3x7xf32>)
      attrs = {conv_compiler.loops = ["k", "x", "c", "n", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: bf16, %b: bf16, %sum: f32):
    %wide_a = arith.extf %a : bf16 to f32
    %wide_b = arith.extf %b : bf16 to f32
    %product = arith.mulf %wide_a, %wide_b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<5x3x7xf32>
  return %weight : tensor<5x3x7xf32>
}
