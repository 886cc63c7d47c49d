// One (m, n) tile of one part of one group a workgroup; both im2col move into the grid.

// RUN: %run_scripts %s | %filecheck

// 64 x 96 in tiles of 32 x 48, in two parts: 2 x 1 x 2 x 2 workgroups of 64 gemm_k each.
// CHECK-LABEL: func.func @whole_tiles
// CHECK:         scf.forall {{.*}} in (2, 1, 2, 2)
// CHECK:           im2col {conv_compiler.operand = "a"} {{.*}} -> tensor<1x64x32xf16>
// CHECK:           im2col {conv_compiler.operand = "b"} {{.*}} -> tensor<1x64x48xf16>
// CHECK:           linalg.fill {{.*}} -> tensor<32x48xf32>
// CHECK:           linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:         mapping = [#iree_codegen.workgroup_mapping<z:1>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<x>]
func.func @whole_tiles(%gradient: tensor<128x1x64xf16>,
    %image: tensor<2x8x8x1x96xf16>) -> tensor<2x1x64x96xf32> {
  %zero = arith.constant 0.0 : f16
  %zero_f32 = arith.constant 0.0 : f32
  %a_out = tensor.empty() : tensor<1x128x64xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [128], [1, 64]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0] pad_value(%zero : f16)
      ins(%gradient : tensor<128x1x64xf16>) outs(%a_out : tensor<1x128x64xf16>)
      -> tensor<1x128x64xf16>
  %b_out = tensor.empty() : tensor<1x128x96xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 1, 1] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 8, 8], [1, 1, 1, 96]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0]
      pad_value(%zero : f16)
      ins(%image : tensor<2x8x8x1x96xf16>) outs(%b_out : tensor<1x128x96xf16>)
      -> tensor<1x128x96xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [1, 2, 64, 64]
      : tensor<1x128x64xf16> into tensor<1x2x64x64xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [1, 2, 64, 96]
      : tensor<1x128x96xf16> into tensor<1x2x64x96xf16>
  %empty = tensor.empty() : tensor<2x1x64x96xf32>
  %fill = linalg.fill ins(%zero_f32 : f32) outs(%empty : tensor<2x1x64x96xf32>) -> tensor<2x1x64x96xf32>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, n, k) -> (g, s, k, n)>,
                       affine_map<(s, g, m, n, k) -> (s, g, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x2x64x64xf16>, tensor<1x2x64x96xf16>)
      outs(%fill : tensor<2x1x64x96xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x1x64x96xf32>
  return %gemm : tensor<2x1x64x96xf32>
}

// 20 x 12 x 18 rounded up to one tile: the grid has one workgroup, which takes the operands whole.
// CHECK-LABEL: func.func @rounded_up
// CHECK:         im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 14, 12]
// CHECK:         im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, 14, 36]
// CHECK:         scf.forall {{.*}} in (1, 1, 1, 1)
// CHECK:           linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
func.func @rounded_up(%gradient: tensor<18x1x20xf16>,
    %image: tensor<2x4x4x1x3xf16>) -> tensor<1x1x32x48xf32> {
  %zero = arith.constant 0.0 : f16
  %zero_f32 = arith.constant 0.0 : f32
  %a_out = tensor.empty() : tensor<1x32x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [18], [1, 20]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 12] pad_value(%zero : f16)
      ins(%gradient : tensor<18x1x20xf16>) outs(%a_out : tensor<1x32x32xf16>)
      -> tensor<1x32x32xf16>
  %b_out = tensor.empty() : tensor<1x32x48xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 2, 2] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 3, 3], [1, 2, 2, 3]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 36]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x1x3xf16>) outs(%b_out : tensor<1x32x48xf16>)
      -> tensor<1x32x48xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [1, 1, 32, 32]
      : tensor<1x32x32xf16> into tensor<1x1x32x32xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [1, 1, 32, 48]
      : tensor<1x32x48xf16> into tensor<1x1x32x48xf16>
  %empty = tensor.empty() : tensor<1x1x32x48xf32>
  %fill = linalg.fill ins(%zero_f32 : f32) outs(%empty : tensor<1x1x32x48xf32>) -> tensor<1x1x32x48xf32>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, n, k) -> (g, s, k, n)>,
                       affine_map<(s, g, m, n, k) -> (s, g, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x1x32x32xf16>, tensor<1x1x32x48xf16>)
      outs(%fill : tensor<1x1x32x48xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x1x32x48xf32>
  return %gemm : tensor<1x1x32x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @operands_into_grid(!transform.any_op {transform.readonly},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @contraction(!transform.any_op {transform.readonly})
      -> !transform.any_op
  transform.named_sequence private @workgroups_sgmn(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.param.constant 32 : i64 -> !transform.param<i64>
    %n = transform.param.constant 48 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      %gemm = transform.include @contraction failures(propagate) (%func)
          : (!transform.any_op) -> !transform.any_op
      %grid = transform.include @workgroups_sgmn failures(propagate) (%func, %gemm, %m, %n)
          : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
          -> !transform.any_op
      transform.include @operands_into_grid failures(propagate) (%func, %grid)
          : (!transform.any_op, !transform.any_op) -> ()
    }
    transform.yield
  }
}
