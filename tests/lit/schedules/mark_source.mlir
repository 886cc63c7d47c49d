// What an operand is read from is marked, before its im2col becomes vectors.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @gradient
// CHECK:         tensor.collapse_shape {{.*}} {conv_compiler.unmasked}
// CHECK:         iree_linalg_ext.im2col {conv_compiler.operand = "a"}
func.func @gradient(%gradient: tensor<4x5x1x32xf16>) -> tensor<1x20x32xf16> {
  %pixels = tensor.collapse_shape %gradient [[0, 1], [2], [3]]
      : tensor<4x5x1x32xf16> into tensor<20x1x32xf16>
  %out = tensor.empty() : tensor<1x20x32xf16>
  %a = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [20], [1, 32]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      ins(%pixels : tensor<20x1x32xf16>) outs(%out : tensor<1x20x32xf16>) -> tensor<1x20x32xf16>
  return %a : tensor<1x20x32xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @mark_source_a(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.include @mark_source_a failures(propagate) (%func) : (!transform.any_op) -> ()
    transform.yield
  }
}
