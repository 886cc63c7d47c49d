// Summed loops are cut into parts, which become the outermost parallel loops; partial results are
// summed by an op of their own, part 0 first.

// RUN: %conv_opt %s --pass 'split-reduction{loops=n,wo parts=2,5}' | %filecheck
// RUN: not %conv_opt %s --pass 'split-reduction{loops=wo parts=3}' 2>&1 | %filecheck --check-prefix=ODD

// The image is read where it lies: a part starts 2 images or 2 columns after the one before.
// CHECK-DAG: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0 * 2 + d5, d4, d1 * 2 + d3 + d6)>
// CHECK-DAG: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d5, d2, d1, d6)>
// CHECK-DAG: #[[PARTIAL:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4)>
// CHECK-DAG: #[[PARTS:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1, d2)>
// CHECK:     linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[PARTIAL]]]
// CHECK-SAME:  outs({{.*}} : tensor<2x5x5x3x7xf32>)
// CHECK-SAME:  conv_compiler.loops = ["part_n", "part_wo", "k", "x", "c", "n", "wo"]
// CHECK:     tensor.collapse_shape {{.*}} into tensor<10x5x3x7xf32>
// CHECK:     linalg.generic {indexing_maps = [#[[PARTS]],
// CHECK-SAME:  iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:  conv_compiler.role = "reduction"

// ODD: 3 parts of loop wo: not a summed loop they divide; pad it or pick one of n wo

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
