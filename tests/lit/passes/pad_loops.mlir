// Loops grow by zeros: an operand is padded along the axes they index, the result cut back.

// RUN: %conv_opt %s --pass 'pad-loops{loops=c,wo sizes=8,12}' | %filecheck
// RUN: not %conv_opt %s --pass 'pad-loops{loops=c sizes=6}' 2>&1 | %filecheck --check-prefix=SMALL
// RUN: not %conv_opt %s --pass 'pad-loops{loops=q sizes=6}' 2>&1 | %filecheck --check-prefix=NONE

// The window over wo needs 12 + 3 - 1 columns of the image.
// CHECK:      tensor.pad {{.*}} high[0, 1, 2]
// CHECK:        tensor<4x7x12xf32> to tensor<4x8x14xf32>
// CHECK:      tensor.pad {{.*}} high[0, 0, 2]
// CHECK:        tensor<4x5x10xf32> to tensor<4x5x12xf32>
// CHECK:      linalg.generic
// CHECK-SAME:   outs({{.*}} : tensor<5x3x8xf32>)
// CHECK:      tensor.extract_slice {{.*}}[0, 0, 0] [5, 3, 7]

// SMALL: size 6 of loop c: below the loop's; give 7 or more
// NONE: loop q: not of the contraction; pad some of k x c n wo

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
