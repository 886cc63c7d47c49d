// The transposing copies of the main loop: a thread reads its own piece of the source.

// RUN: %run_scripts %s | %filecheck

// A thread brings 8 of m by 1 of gemm_k of operand 0, and 1 of n by 4 of gemm_k of operand 1.
// CHECK-LABEL: func.func @whole_tiles
// CHECK:         scf.for
// CHECK:           scf.forall {{.*}} in (1, 2, 2, 16)
// CHECK:             im2col {conv_compiler.operand = "a"} {{.*}} -> tensor<1x1x8xf16>
// CHECK:             linalg.transpose {{.*}} outs({{.*}} : tensor<1x1x8x1xf16>)
// CHECK:           scf.forall {{.*}} in (1, 2, 16, 4)
// CHECK:             im2col {conv_compiler.operand = "b"} {{.*}} -> tensor<1x4x1xf16>
// CHECK:             linalg.transpose {{.*}} outs({{.*}} : tensor<1x1x1x4xf16>)
// CHECK:           iree_codegen.inner_tiled
func.func @whole_tiles(%gradient: tensor<32x1x32xf16>,
    %image: tensor<2x4x4x1x32xf16>, %sums: tensor<2x2x16x16xf32>)
    -> tensor<2x2x16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %iterations = arith.constant 2 : index
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x32x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [32], [1, 32]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0] pad_value(%zero : f16)
      ins(%gradient : tensor<32x1x32xf16>) outs(%a_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %b_out = tensor.empty() : tensor<1x32x32xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 1, 1] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 4, 4], [1, 1, 1, 32]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x1x32xf16>) outs(%b_out : tensor<1x32x32xf16>)
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

// What is read behind the last of 18 x 20 and 18 x 12 is zero, by the im2col's own padding.
// CHECK-LABEL: func.func @rounded_up
// CHECK:         scf.for
// CHECK:           im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, %{{.+}}, %{{.+}}]
// CHECK-SAME:        -> tensor<1x1x8xf16>
// CHECK:           im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, %{{.+}}, %{{.+}}]
// CHECK-SAME:        -> tensor<1x4x1xf16>
// CHECK:           iree_codegen.inner_tiled
func.func @rounded_up(%gradient: tensor<18x1x20xf16>,
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
  transform.named_sequence private @read_in_threads(!transform.any_op {transform.readonly},
      !transform.any_op {transform.readonly}, !transform.any_op {transform.readonly})
  transform.named_sequence private @threads_ri_row_k(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %c1 = transform.param.constant 1 : i64 -> !transform.param<i64>
    %c4 = transform.param.constant 4 : i64 -> !transform.param<i64>
    %c8 = transform.param.constant 8 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      %a, %b = transform.include @operand_copies failures(propagate) (%func)
          : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      %a_threads = transform.include @threads_ri_row_k failures(propagate) (%func, %a, %c8, %c1)
          : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
          -> !transform.any_op
      %b_threads = transform.include @threads_ri_row_k failures(propagate) (%func, %b, %c1, %c4)
          : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
          -> !transform.any_op
      transform.include @read_in_threads failures(propagate) (%func, %a_threads, %b_threads)
          : (!transform.any_op, !transform.any_op, !transform.any_op) -> ()
    }
    transform.yield
  }
}
