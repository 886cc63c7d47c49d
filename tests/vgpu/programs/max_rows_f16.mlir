// Each row's maximum.
func.func @main(%x: tensor<40x130xf16>) -> tensor<40xf16> {
  %start = arith.constant 0xFC00 : f16
  %empty = tensor.empty() : tensor<40xf16>
  %init = linalg.fill ins(%start : f16) outs(%empty : tensor<40xf16>) -> tensor<40xf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<40x130xf16>) outs(%init : tensor<40xf16>) {
    ^bb0(%in: f16, %acc: f16):
      %r = arith.maximumf %in, %acc : f16
      linalg.yield %r : f16
  } -> tensor<40xf16>
  return %y : tensor<40xf16>
}
