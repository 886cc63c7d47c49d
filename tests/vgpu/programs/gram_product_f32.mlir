// x^T (x x^T): a transposition and two products, with transients between the kernels.
func.func @main(%x: tensor<8x64xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<64x8xf32>
  %t = linalg.transpose ins(%x : tensor<8x64xf32>) outs(%wide : tensor<64x8xf32>) permutation = [1, 0]
  %square = tensor.empty() : tensor<8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%square : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.matmul ins(%x, %t : tensor<8x64xf32>, tensor<64x8xf32>)
       outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %init2 = linalg.fill ins(%zero : f32) outs(%wide : tensor<64x8xf32>) -> tensor<64x8xf32>
  %y = linalg.matmul ins(%t, %g : tensor<64x8xf32>, tensor<8x8xf32>)
       outs(%init2 : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}
