// The parallel loops in the order given: the operand the last one indexes is transposed to have it
// innermost, the other is left as it lies, the result is transposed back.

// RUN: %conv_opt %s --pass 'order-loops{loops=k,x,c}' | %filecheck
// RUN: %conv_opt %s --pass 'order-loops{loops=c,x,k}' | %filecheck --check-prefix=K
// RUN: %conv_opt %s --pass 'order-loops{loops=k,x,c as_it_lies=true}' | %filecheck --check-prefix=LIES
// RUN: not %conv_opt %s --pass 'order-loops{loops=k,c}' 2>&1 | %filecheck --check-prefix=SHORT

// CHECK:      %[[LANES:.+]] = linalg.generic {{.*}} ins({{.*}} : tensor<4x7x12xf32>)
// CHECK-SAME:   outs({{.*}} : tensor<4x12x7xf32>)
// CHECK:      linalg.generic {{.*}} ins(%[[LANES]], %arg1 : tensor<4x12x7xf32>, tensor<4x5x10xf32>)
// CHECK-SAME:   conv_compiler.loops = ["k", "x", "c", "n", "wo"]
// CHECK-NOT:  linalg.generic

// K:      outs({{.*}} : tensor<4x10x5xf32>)
// K:      linalg.generic {{.*}} outs({{.*}} : tensor<7x3x5xf32>)
// K-SAME:   conv_compiler.loops = ["c", "x", "k", "n", "wo"]
// K:      linalg.generic {{.*}} ins({{.*}} : tensor<7x3x5xf32>) outs({{.*}} : tensor<5x3x7xf32>)

// LIES:      linalg.fill
// LIES-NEXT: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x7x12xf32>, tensor<4x5x10xf32>)
// LIES-NOT:  linalg.generic

// SHORT: loops k c: not the parallel loops of the contraction; order k x c

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
