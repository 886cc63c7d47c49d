// Softmax of each row.
func.func @main(%x: tensor<12x193xf32>) -> tensor<12x193xf32> {
  %empty = tensor.empty() : tensor<12x193xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<12x193xf32>)
       outs(%empty : tensor<12x193xf32>) -> tensor<12x193xf32>
  return %y : tensor<12x193xf32>
}
