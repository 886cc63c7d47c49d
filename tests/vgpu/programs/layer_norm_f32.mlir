// Rows brought to mean 0 and variance 1, then scaled and shifted.
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<10x320xf32>, %scale: tensor<320xf32>, %shift: tensor<320xf32>) -> tensor<10x320xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 320.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %e1 = tensor.empty() : tensor<10xf32>
  %e2 = tensor.empty() : tensor<10x320xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e1 : tensor<10xf32>) -> tensor<10xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<10x320xf32>) outs(%init : tensor<10xf32>) {
    ^bb0(%a: f32, %s: f32):
      %r = arith.addf %a, %s : f32
      linalg.yield %r : f32
  } -> tensor<10xf32>
  %squares = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %sum : tensor<10x320xf32>, tensor<10xf32>) outs(%init : tensor<10xf32>) {
    ^bb0(%a: f32, %s: f32, %q: f32):
      %mean = arith.divf %s, %n : f32
      %d = arith.subf %a, %mean : f32
      %dd = arith.mulf %d, %d : f32
      %r = arith.addf %dd, %q : f32
      linalg.yield %r : f32
  } -> tensor<10xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #i, #j, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %squares, %scale, %shift
          : tensor<10x320xf32>, tensor<10xf32>, tensor<10xf32>, tensor<320xf32>, tensor<320xf32>)
      outs(%e2 : tensor<10x320xf32>) {
    ^bb0(%a: f32, %s: f32, %q: f32, %g: f32, %b: f32, %o: f32):
      %mean = arith.divf %s, %n : f32
      %var = arith.divf %q, %n : f32
      %ve = arith.addf %var, %eps : f32
      %inv = math.rsqrt %ve : f32
      %d = arith.subf %a, %mean : f32
      %t = arith.mulf %d, %inv : f32
      %u = arith.mulf %t, %g : f32
      %r = arith.addf %u, %b : f32
      linalg.yield %r : f32
  } -> tensor<10x320xf32>
  return %y : tensor<10x320xf32>
}
