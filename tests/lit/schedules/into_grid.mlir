// An im2col moves into the loop over workgroups, where one takes a slice of it.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @sliced
// CHECK:         scf.forall
// CHECK:           im2col {conv_compiler.operand = "a"} {{.*}} -> tensor<1x32x16xf16>
// CHECK:           im2col {conv_compiler.operand = "b"} {{.*}} -> tensor<1x32x16xf16>
func.func @sliced(%gradient: tensor<18x1x20xf16>, %image: tensor<2x4x4x1x3xf16>,
    %sums: tensor<1x32x32xf16>) -> tensor<1x32x32xf16> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x32x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [18], [1, 20]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 12] pad_value(%zero : f16)
      ins(%gradient : tensor<18x1x20xf16>) outs(%a_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %b_out = tensor.empty() : tensor<1x32x32xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 2, 2] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 3, 3], [1, 2, 2, 3]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 20]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x1x3xf16>) outs(%b_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %product = scf.forall (%i) = (0) to (32) step (16) shared_outs(%out = %sums)
      -> (tensor<1x32x32xf16>) {
    %a = tensor.extract_slice %a_k[0, 0, %i] [1, 32, 16] [1, 1, 1]
        : tensor<1x32x32xf16> to tensor<1x32x16xf16>
    %b = tensor.extract_slice %b_k[0, 0, %i] [1, 32, 16] [1, 1, 1]
        : tensor<1x32x32xf16> to tensor<1x32x16xf16>
    %sum = arith.addf %a, %b : tensor<1x32x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %out[0, 0, %i] [1, 32, 16] [1, 1, 1]
          : tensor<1x32x16xf16> into tensor<1x32x32xf16>
    }
  }
  return %product : tensor<1x32x32xf16>
}

// One workgroup takes the reshaped operand whole: nothing to move, and nothing that stops the
// schedule.
// CHECK-LABEL: func.func @whole
// CHECK:         im2col {conv_compiler.operand = "a"}
// CHECK:         scf.forall
// CHECK-NOT:       im2col
// CHECK:         return
func.func @whole(%gradient: tensor<18x1x20xf16>, %sums: tensor<32x32xf16>)
    -> tensor<32x32xf16> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x32x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [18], [1, 20]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 12] pad_value(%zero : f16)
      ins(%gradient : tensor<18x1x20xf16>) outs(%a_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %a = tensor.collapse_shape %a_k [[0, 1], [2]] : tensor<1x32x32xf16> into tensor<32x32xf16>
  %product = scf.forall (%i) in (1) shared_outs(%out = %sums) -> (tensor<32x32xf16>) {
    %sum = arith.addf %a, %out : tensor<32x32xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %out[%i, 0] [32, 32] [1, 1]
          : tensor<32x32xf16> into tensor<32x32xf16>
    }
  }
  return %product : tensor<32x32xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @a_into_grid(!transform.any_op {transform.readonly})
  transform.named_sequence private @b_into_grid(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @a_into_grid failures(suppress) (%func) : (!transform.any_op) -> ()
      transform.include @b_into_grid failures(suppress) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
