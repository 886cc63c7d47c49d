// sin, elementwise, over a shape that divides no tile.
func.func @main(%x: tensor<37x51xf32>) -> tensor<37x51xf32> {
  %empty = tensor.empty() : tensor<37x51xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x51xf32>)
       outs(%empty : tensor<37x51xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = math.sin %in : f32
      linalg.yield %r : f32
  } -> tensor<37x51xf32>
  return %y : tensor<37x51xf32>
}
