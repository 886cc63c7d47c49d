// Rows become columns.
func.func @main(%x: tensor<70x130xf16>) -> tensor<130x70xf16> {
  %empty = tensor.empty() : tensor<130x70xf16>
  %y = linalg.transpose ins(%x : tensor<70x130xf16>)
       outs(%empty : tensor<130x70xf16>) permutation = [1, 0]
  return %y : tensor<130x70xf16>
}
