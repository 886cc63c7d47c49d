// Maximum of 3x3 windows, stride 2.
func.func @main(%x: tensor<1x18x18x20xf32>) -> tensor<1x8x8x20xf32> {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x8x8x20xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<1x8x8x20xf32>) -> tensor<1x8x8x20xf32>
  %y = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
       ins(%x, %window : tensor<1x18x18x20xf32>, tensor<3x3xf32>)
       outs(%init : tensor<1x8x8x20xf32>) -> tensor<1x8x8x20xf32>
  return %y : tensor<1x8x8x20xf32>
}
