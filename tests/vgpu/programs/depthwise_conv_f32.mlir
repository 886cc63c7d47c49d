// 3x3 convolution of each channel by itself.
func.func @main(%x: tensor<1x14x14x36xf32>, %w: tensor<3x3x36xf32>) -> tensor<1x12x12x36xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x12x12x36xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x12x12x36xf32>) -> tensor<1x12x12x36xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
       ins(%x, %w : tensor<1x14x14x36xf32>, tensor<3x3x36xf32>)
       outs(%init : tensor<1x12x12x36xf32>) -> tensor<1x12x12x36xf32>
  return %y : tensor<1x12x12x36xf32>
}
