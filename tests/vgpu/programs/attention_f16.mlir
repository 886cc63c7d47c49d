// Softmax of scaled q k^T, times v.
func.func @main(%q: tensor<2x64x32xf16>, %k: tensor<2x64x32xf16>, %v: tensor<2x64x32xf16>) -> tensor<2x64x32xf16> {
  %scale = arith.constant 0.25 : f16
  %empty = tensor.empty() : tensor<2x64x32xf16>
  %y = iree_linalg_ext.attention <indexing_maps = [
      affine_map<(b, m, k, l, n) -> (b, m, k)>, affine_map<(b, m, k, l, n) -> (b, l, k)>,
      affine_map<(b, m, k, l, n) -> (b, l, n)>, affine_map<(b, m, k, l, n) -> ()>,
      affine_map<(b, m, k, l, n) -> (b, m, n)>]>
      ins(%q, %k, %v, %scale : tensor<2x64x32xf16>, tensor<2x64x32xf16>, tensor<2x64x32xf16>, f16)
      outs(%empty : tensor<2x64x32xf16>) {
    ^bb0(%s: f32):
      iree_linalg_ext.yield %s : f32
  } -> tensor<2x64x32xf16>
  return %y : tensor<2x64x32xf16>
}
