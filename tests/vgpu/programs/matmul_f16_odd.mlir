// A product whose sizes divide no tile.
func.func @main(%a: tensor<45x33xf16>, %b: tensor<33x70xf16>) -> tensor<45x70xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<45x70xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<45x70xf32>) -> tensor<45x70xf32>
  %c = linalg.matmul ins(%a, %b : tensor<45x33xf16>, tensor<33x70xf16>)
                     outs(%init : tensor<45x70xf32>) -> tensor<45x70xf32>
  return %c : tensor<45x70xf32>
}
