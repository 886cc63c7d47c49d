// A product whose rows are counted at run time.
func.func @main(%a: tensor<?x64xf16>, %b: tensor<64x48xf16>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf16>
  %empty = tensor.empty(%m) : tensor<?x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x64xf16>, tensor<64x48xf16>)
       outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %c : tensor<?x48xf32>
}
