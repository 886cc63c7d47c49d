// A product of 32-bit integers.
func.func @main(%a: tensor<20x36xi32>, %b: tensor<36x24xi32>) -> tensor<20x24xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<20x24xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<20x24xi32>) -> tensor<20x24xi32>
  %c = linalg.matmul ins(%a, %b : tensor<20x36xi32>, tensor<36x24xi32>)
                     outs(%init : tensor<20x24xi32>) -> tensor<20x24xi32>
  return %c : tensor<20x24xi32>
}
