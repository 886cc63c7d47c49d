// Each row's sum.
func.func @main(%x: tensor<5x1000xi32>) -> tensor<5xi32> {
  %start = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<5xi32>
  %init = linalg.fill ins(%start : i32) outs(%empty : tensor<5xi32>) -> tensor<5xi32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x1000xi32>) outs(%init : tensor<5xi32>) {
    ^bb0(%in: i32, %acc: i32):
      %r = arith.addi %in, %acc : i32
      linalg.yield %r : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}
