// a * b + a, elementwise.
func.func @main(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %m = arith.mulf %a, %b : tensor<1000xf32>
  %s = arith.addf %m, %a : tensor<1000xf32>
  return %s : tensor<1000xf32>
}
