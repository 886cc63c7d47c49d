// 3x3 convolution, channels last.
func.func @main(%x: tensor<2x16x16x24xf16>, %w: tensor<3x3x24x32xf16>) -> tensor<2x14x14x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x14x14x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x14x14x32xf32>) -> tensor<2x14x14x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
       ins(%x, %w : tensor<2x16x16x24xf16>, tensor<3x3x24x32xf16>)
       outs(%init : tensor<2x14x14x32xf32>) -> tensor<2x14x14x32xf32>
  return %y : tensor<2x14x14x32xf32>
}
