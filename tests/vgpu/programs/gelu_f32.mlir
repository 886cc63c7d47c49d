// x * (1 + erf(x / sqrt(2))) / 2.
func.func @main(%x: tensor<19x70xf32>) -> tensor<19x70xf32> {
  %half = arith.constant dense<0.5> : tensor<19x70xf32>
  %one = arith.constant dense<1.0> : tensor<19x70xf32>
  %root = arith.constant dense<0.70710678> : tensor<19x70xf32>
  %s = arith.mulf %x, %root : tensor<19x70xf32>
  %e = math.erf %s : tensor<19x70xf32>
  %p = arith.addf %e, %one : tensor<19x70xf32>
  %h = arith.mulf %x, %half : tensor<19x70xf32>
  %y = arith.mulf %h, %p : tensor<19x70xf32>
  return %y : tensor<19x70xf32>
}
