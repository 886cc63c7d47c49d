// Each row's sum.
func.func @main(%x: tensor<17x511xf32>) -> tensor<17xf32> {
  %start = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<17xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<17xf32>) -> tensor<17xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<17x511xf32>) outs(%init : tensor<17xf32>) {
    ^bb0(%in: f32, %acc: f32):
      %r = arith.addf %in, %acc : f32
      linalg.yield %r : f32
  } -> tensor<17xf32>
  return %y : tensor<17xf32>
}
