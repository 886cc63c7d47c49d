// Finds the two copies in the loop of the matrix instruction, in the order of its operands.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @find
// CHECK:         linalg.transpose {{.*}} {conv_compiler.test = "a"}
// CHECK:         linalg.transpose {{.*}} {conv_compiler.test = "b"}
// CHECK:         iree_codegen.inner_tiled
func.func @find(%gradient: tensor<18x1x20xf16>,
    %image: tensor<2x4x4x1x3xf16>, %sums: tensor<2x2x16x16xf32>)
    -> tensor<2x2x16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %iterations = arith.constant 2 : index
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
  %product = scf.for %i = %c0 to %iterations step %c1 iter_args(%sum = %sums)
      -> (tensor<2x2x16x16xf32>) {
    %k = affine.apply affine_map<(i) -> (i * 16)>(%i)
    %a_tile = tensor.extract_slice %a_k[0, %k, 0] [1, 16, 32] [1, 1, 1]
        : tensor<1x32x32xf16> to tensor<1x16x32xf16>
    %b_tile = tensor.extract_slice %b_k[0, %k, 0] [1, 16, 32] [1, 1, 1]
        : tensor<1x32x32xf16> to tensor<1x16x32xf16>
    %a_rows = tensor.expand_shape %a_tile [[0], [1], [2, 3]] output_shape [1, 16, 2, 16]
        : tensor<1x16x32xf16> into tensor<1x16x2x16xf16>
    %b_rows = tensor.expand_shape %b_tile [[0], [1], [2, 3]] output_shape [1, 16, 2, 16]
        : tensor<1x16x32xf16> into tensor<1x16x2x16xf16>
    %lds = tensor.empty() : tensor<1x2x16x16xf16>
    %a = linalg.transpose ins(%a_rows : tensor<1x16x2x16xf16>)
        outs(%lds : tensor<1x2x16x16xf16>) permutation = [0, 2, 3, 1]
    %b = linalg.transpose ins(%b_rows : tensor<1x16x2x16xf16>)
        outs(%lds : tensor<1x2x16x16xf16>) permutation = [0, 2, 3, 1]
    %next = iree_codegen.inner_tiled ins(%a, %b) outs(%sum)
          <indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                            affine_map<(m, n, k) -> (m, n)>],
           iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>,
                             #linalg.iterator_type<reduction>],
           kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>,
           semantics = #iree_gpu.mma_semantics<distributed = false, opaque = true>,
           permutations = [array<i64: 0, 1>, array<i64: 1, 0>, array<i64: 0, 1>]>
          : tensor<1x2x16x16xf16>, tensor<1x2x16x16xf16> into tensor<2x2x16x16xf32>
    scf.yield %next : tensor<2x2x16x16xf32>
  }
  return %product : tensor<2x2x16x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @operand_copies(!transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_op)
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      %a, %b = transform.include @operand_copies failures(propagate) (%func)
          : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      %a_name = transform.param.constant "a" -> !transform.any_param
      %b_name = transform.param.constant "b" -> !transform.any_param
      transform.annotate %a "conv_compiler.test" = %a_name : !transform.any_op, !transform.any_param
      transform.annotate %b "conv_compiler.test" = %b_name : !transform.any_op, !transform.any_param
    }
    transform.yield
  }
}
