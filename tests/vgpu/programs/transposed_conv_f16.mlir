// Stride 2 up: zeros put between the pixels, then a 3x3 convolution over a border of two.
func.func @main(%x: tensor<1x7x7x16xf16>, %w: tensor<3x3x16x16xf16>) -> tensor<1x15x15x16xf32> {
  %zero16 = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %blank = tensor.empty() : tensor<1x17x17x16xf16>
  %zeros = linalg.fill ins(%zero16 : f16) outs(%blank : tensor<1x17x17x16xf16>) -> tensor<1x17x17x16xf16>
  %spread = tensor.insert_slice %x into %zeros[0, 2, 2, 0] [1, 7, 7, 16] [1, 2, 2, 1]
      : tensor<1x7x7x16xf16> into tensor<1x17x17x16xf16>
  %empty = tensor.empty() : tensor<1x15x15x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x15x15x16xf32>) -> tensor<1x15x15x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
       ins(%spread, %w : tensor<1x17x17x16xf16>, tensor<3x3x16x16xf16>)
       outs(%init : tensor<1x15x15x16xf32>) -> tensor<1x15x15x16xf32>
  return %y : tensor<1x15x15x16xf32>
}
