// Sums of channels in two levels: parts and adjacent elements, then the sum of both.

// RUN: %conv_opt %s --pass 'channel-sums{levels=2,4;1,1}' | %filecheck

// Pixel 12 p + 4 l + q of part p is summed over l; q and the channels are one loop of the lanes.
// CHECK:     %[[D:.+]] = tensor.expand_shape {{.*}} into tensor<2x3x20xf16>
// CHECK:     flow.dispatch.region -> (tensor<2x20xf32>)
// CHECK:       linalg.generic
// CHECK-SAME:  iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME:  conv_compiler.role = "channel_sums"
// CHECK:     flow.dispatch.region -> (tensor<5xf16>)
// CHECK:       linalg.generic
// CHECK-SAME:  iterator_types = ["parallel", "reduction"]
// CHECK-SAME:  conv_compiler.role = "channel_sums_2"
// CHECK:       linalg.generic
// CHECK-SAME:  conv_compiler.role = "epilogue"

func.func @main(%d: tensor<24x5xf16>) -> tensor<5xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %sums = linalg.generic {
      indexing_maps = [affine_map<(k, p) -> (p, k)>, affine_map<(k, p) -> (k)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<24x5xf16>) outs(%filled : tensor<5xf32>)
      attrs = {conv_compiler.role = "channel_sums"} {
  ^bb0(%x: f16, %total: f32):
    %wide = arith.extf %x : f16 to f32
    %next = arith.addf %total, %wide : f32
    linalg.yield %next : f32
  } -> tensor<5xf32>
  %result = tensor.empty() : tensor<5xf16>
  %rounded = linalg.generic {
      indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>],
      iterator_types = ["parallel"]}
      ins(%sums : tensor<5xf32>) outs(%result : tensor<5xf16>)
      attrs = {conv_compiler.role = "epilogue"} {
  ^bb0(%x: f32, %before: f16):
    %narrow = arith.truncf %x : f32 to f16
    linalg.yield %narrow : f16
  } -> tensor<5xf16>
  return %rounded : tensor<5xf16>
}
