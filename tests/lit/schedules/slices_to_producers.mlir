// A slice of a reshaped im2col becomes a reshape of its slice, which tiling can then move.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @past_reshape
// CHECK:         %[[IM2COL:.+]] = iree_linalg_ext.im2col
// CHECK:         %[[SLICE:.+]] = tensor.extract_slice %[[IM2COL]]
// CHECK-SAME:      : tensor<1x32x32xf16> to tensor<1x16x32xf16>
// CHECK:         tensor.expand_shape %[[SLICE]]
func.func @past_reshape(%gradient: tensor<18x1x20xf16>, %i: index) -> tensor<1x1x16x32xf16> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x32x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [18], [1, 20]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 12] pad_value(%zero : f16)
      ins(%gradient : tensor<18x1x20xf16>) outs(%a_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [1, 2, 16, 32]
      : tensor<1x32x32xf16> into tensor<1x2x16x32xf16>
  %part = tensor.extract_slice %a[0, %i, 0, 0] [1, 1, 16, 32] [1, 1, 1, 1]
      : tensor<1x2x16x32xf16> to tensor<1x1x16x32xf16>
  return %part : tensor<1x1x16x32xf16>
}

// A piece that is not a whole row of the reshape stays where it is.
// CHECK-LABEL: func.func @across_rows
// CHECK:         tensor.collapse_shape
// CHECK:         tensor.extract_slice {{.*}} : tensor<64xf16> to tensor<24xf16>
func.func @across_rows(%x: tensor<4x16xf16>, %i: index) -> tensor<24xf16> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x16xf16> into tensor<64xf16>
  %part = tensor.extract_slice %flat[%i] [24] [1] : tensor<64xf16> to tensor<24xf16>
  return %part : tensor<24xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @slices_to_producers(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @slices_to_producers failures(propagate) (%func)
          : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
