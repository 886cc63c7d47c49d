// Three products.
func.func @main(%a: tensor<3x40x72xf16>, %b: tensor<3x72x56xf16>) -> tensor<3x40x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x40x56xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x40x56xf32>) -> tensor<3x40x56xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<3x40x72xf16>, tensor<3x72x56xf16>)
       outs(%init : tensor<3x40x56xf32>) -> tensor<3x40x56xf32>
  return %c : tensor<3x40x56xf32>
}
