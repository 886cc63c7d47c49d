// tanh, elementwise, over a shape that divides no tile.
func.func @main(%x: tensor<37x51xf16>) -> tensor<37x51xf16> {
  %empty = tensor.empty() : tensor<37x51xf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<37x51xf16>)
       outs(%empty : tensor<37x51xf16>) {
    ^bb0(%in: f16, %out: f16):
      %r = math.tanh %in : f16
      linalg.yield %r : f16
  } -> tensor<37x51xf16>
  return %y : tensor<37x51xf16>
}
