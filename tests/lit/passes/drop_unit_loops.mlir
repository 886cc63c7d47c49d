// Loops of one iteration go, with the axes only they index; a window that loses its tap or its pixel is
// cut to what is read.

// RUN: %conv_opt %s --pass drop-unit-loops | %filecheck
// RUN: %conv_opt %s --pass 'drop-unit-loops{keep=n}' | %filecheck --check-prefix=KEEP

// One image, one row of taps: n, y and wo have one iteration. The rows 2 * ho stay, of the 4 columns
// the 3 taps are read.
// CHECK-DAG: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d3 * 2, d1, d2)>
// CHECK-DAG: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d0)>
// CHECK-DAG: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK:     %[[ROWS:.+]] = tensor.collapse_shape %{{.+}} {{\[\[}}0, 1], [2], [3]]
// CHECK-SAME:  into tensor<5x4x8xf32>
// CHECK:     tensor.extract_slice %[[ROWS]][0, 0, 0] [5, 3, 8] [1, 1, 1]
// CHECK:     linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// CHECK-SAME:  outs({{.*}} : tensor<16x3x8xf32>)
// CHECK-SAME:  conv_compiler.loops = ["k", "x", "c", "ho"]
// CHECK:     tensor.expand_shape {{.*}} tensor<16x3x8xf32> into tensor<16x1x3x8xf32>

// KEEP: conv_compiler.loops = ["k", "x", "c", "n", "ho"]

#image = affine_map<(k, y, x, c, n, ho, wo) -> (n, ho * 2 + y, wo + x, c)>
#gradient = affine_map<(k, y, x, c, n, ho, wo) -> (n, ho, wo, k)>
#weight = affine_map<(k, y, x, c, n, ho, wo) -> (k, y, x, c)>
func.func @main(%image: tensor<1x5x4x8xf32>, %gradient: tensor<1x3x1x16xf32>,
    %zero: tensor<16x1x3x8xf32>) -> tensor<16x1x3x8xf32> {
  %weight = linalg.generic {
      indexing_maps = [#image, #gradient, #weight],
      iterator_types = ["parallel", "parallel", "parallel", "parallel",
                        "reduction", "reduction", "reduction"]}
      ins(%image, %gradient : tensor<1x5x4x8xf32>, tensor<1x3x1x16xf32>)
      outs(%zero : tensor<16x1x3x8xf32>)
      attrs = {conv_compiler.loops = ["k", "y", "x", "c", "n", "ho", "wo"],
               conv_compiler.role = "contraction"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x1x3x8xf32>
  return %weight : tensor<16x1x3x8xf32>
}
