// A matrix times a vector.
func.func @main(%a: tensor<100x257xf32>, %x: tensor<257xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %y = linalg.matvec ins(%a, %x : tensor<100x257xf32>, tensor<257xf32>)
       outs(%init : tensor<100xf32>) -> tensor<100xf32>
  return %y : tensor<100xf32>
}
