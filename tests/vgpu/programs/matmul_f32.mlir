// A product of f32; no size divides a tile.
func.func @main(%a: tensor<50x70xf32>, %b: tensor<70x60xf32>) -> tensor<50x60xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<50x60xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<50x60xf32>) -> tensor<50x60xf32>
  %c = linalg.matmul ins(%a, %b : tensor<50x70xf32>, tensor<70x60xf32>)
                     outs(%init : tensor<50x60xf32>) -> tensor<50x60xf32>
  return %c : tensor<50x60xf32>
}
