// A border of fives, different on every side.
func.func @main(%x: tensor<9x13xf32>) -> tensor<16x16xf32> {
  %v = arith.constant 5.0 : f32
  %y = tensor.pad %x low[2, 1] high[5, 2] {
    ^bb0(%i: index, %j: index):
      tensor.yield %v : f32
  } : tensor<9x13xf32> to tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
