// Vector code: workgroups, then threads that take neighbouring groups, then n, then m.

// RUN: %run_scripts %s | %filecheck

// Workgroups of 4 groups x 8 x 16, threads of 1 x 2 x 4: 4 x 4 x 4 threads in 2 x 1 x 2 x 2.
// CHECK-LABEL: func.func @whole_tiles
// CHECK:         scf.forall {{.*}} in (2, 1, 2, 2)
// CHECK:           scf.forall {{.*}} in (1, 4, 4, 4)
// CHECK:             linalg.fill {{.*}} -> tensor<1x1x2x4xf32>
// CHECK:             linalg.generic {{.*}} outs({{.*}} : tensor<1x1x2x4xf32>)
// CHECK-SAME:          conv_compiler.role = "contraction"
// CHECK:           mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
// CHECK-SAME:        #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]
// CHECK:         mapping = [#iree_codegen.workgroup_mapping<z:1>
func.func @whole_tiles(%gradient: tensor<32x4x16xf16>,
    %image: tensor<2x4x4x4x32xf16>) -> tensor<2x4x16x32xf32> {
  %zero = arith.constant 0.0 : f16
  %zero_f32 = arith.constant 0.0 : f32
  %a_out = tensor.empty() : tensor<4x32x16xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[4], [32], [1, 16]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0] pad_value(%zero : f16)
      ins(%gradient : tensor<32x4x16xf16>) outs(%a_out : tensor<4x32x16xf16>)
      -> tensor<4x32x16xf16>
  %b_out = tensor.empty() : tensor<4x32x32xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 1, 1] offsets = [0, 0, 0]
      output_sizes = [[4], [2, 4, 4], [1, 1, 1, 32]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x4x32xf16>) outs(%b_out : tensor<4x32x32xf16>)
      -> tensor<4x32x32xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [4, 2, 16, 16]
      : tensor<4x32x16xf16> into tensor<4x2x16x16xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [4, 2, 16, 32]
      : tensor<4x32x32xf16> into tensor<4x2x16x32xf16>
  %empty = tensor.empty() : tensor<2x4x16x32xf32>
  %fill = linalg.fill ins(%zero_f32 : f32) outs(%empty : tensor<2x4x16x32xf32>) -> tensor<2x4x16x32xf32>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, n, k) -> (g, s, k, n)>,
                       affine_map<(s, g, m, n, k) -> (s, g, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x2x16x16xf16>, tensor<4x2x16x32xf16>)
      outs(%fill : tensor<2x4x16x32xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x4x16x32xf32>
  return %gemm : tensor<2x4x16x32xf32>
}

// Three groups in workgroups of four: a workgroup takes those there are.
// CHECK-LABEL: func.func @ragged
// CHECK:         scf.forall {{.*}} in (1, 1, 1, 1)
// CHECK:           scf.forall {{.*}} in (1, 4, 4, 3)
// CHECK:             linalg.generic {{.*}} outs({{.*}} : tensor<1x1x2x4xf32>)
func.func @ragged(%gradient: tensor<18x3x5xf16>,
    %image: tensor<2x4x4x3x3xf16>) -> tensor<1x3x8x16xf32> {
  %zero = arith.constant 0.0 : f16
  %zero_f32 = arith.constant 0.0 : f32
  %a_out = tensor.empty() : tensor<3x20x8xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[3], [18], [1, 5]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 2, 3] pad_value(%zero : f16)
      ins(%gradient : tensor<18x3x5xf16>) outs(%a_out : tensor<3x20x8xf16>)
      -> tensor<3x20x8xf16>
  %b_out = tensor.empty() : tensor<3x20x16xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 2, 2] offsets = [0, 0, 0]
      output_sizes = [[3], [2, 3, 3], [1, 2, 2, 3]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 2, 4]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x3x3xf16>) outs(%b_out : tensor<3x20x16xf16>)
      -> tensor<3x20x16xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [3, 1, 20, 8]
      : tensor<3x20x8xf16> into tensor<3x1x20x8xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [3, 1, 20, 16]
      : tensor<3x20x16xf16> into tensor<3x1x20x16xf16>
  %empty = tensor.empty() : tensor<1x3x8x16xf32>
  %fill = linalg.fill ins(%zero_f32 : f32) outs(%empty : tensor<1x3x8x16xf32>) -> tensor<1x3x8x16xf32>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, n, k) -> (g, s, k, n)>,
                       affine_map<(s, g, m, n, k) -> (s, g, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x1x20x8xf16>, tensor<3x1x20x16xf16>)
      outs(%fill : tensor<1x3x8x16xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x3x8x16xf32>
  return %gemm : tensor<1x3x8x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @parallel_tile(!transform.any_op {transform.readonly},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %g = transform.param.constant 4 : i64 -> !transform.param<i64>
    %m = transform.param.constant 8 : i64 -> !transform.param<i64>
    %n = transform.param.constant 16 : i64 -> !transform.param<i64>
    %thread_m = transform.param.constant 2 : i64 -> !transform.param<i64>
    %thread_n = transform.param.constant 4 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @parallel_tile failures(propagate) (%func, %g, %m, %n, %thread_m, %thread_n)
          : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> ()
    }
    transform.yield
  }
}
