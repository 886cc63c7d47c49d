// 64-bit multiply, shift, maximum and subtraction.
func.func @main(%a: tensor<77xi64>, %b: tensor<77xi64>) -> tensor<77xi64> {
  %three = arith.constant dense<3> : tensor<77xi64>
  %p = arith.muli %a, %b : tensor<77xi64>
  %s = arith.shrsi %p, %three : tensor<77xi64>
  %m = arith.maxsi %s, %b : tensor<77xi64>
  %d = arith.subi %m, %a : tensor<77xi64>
  return %d : tensor<77xi64>
}
