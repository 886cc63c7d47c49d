// A product in double precision.
func.func @main(%a: tensor<20x36xf64>, %b: tensor<36x24xf64>) -> tensor<20x24xf64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<20x24xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<20x24xf64>) -> tensor<20x24xf64>
  %c = linalg.matmul ins(%a, %b : tensor<20x36xf64>, tensor<36x24xf64>)
                     outs(%init : tensor<20x24xf64>) -> tensor<20x24xf64>
  return %c : tensor<20x24xf64>
}
