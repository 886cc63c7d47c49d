// The negative of the smaller, else the other.
func.func @main(%a: tensor<33x65xf32>, %b: tensor<33x65xf32>) -> tensor<33x65xf32> {
  %c = arith.cmpf olt, %a, %b : tensor<33x65xf32>
  %n = arith.negf %a : tensor<33x65xf32>
  %s = arith.select %c, %n, %b : tensor<33x65xi1>, tensor<33x65xf32>
  return %s : tensor<33x65xf32>
}
