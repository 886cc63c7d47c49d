// Vector code: a thread walks its gemm_k in steps, and reads each step's operands there.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @whole_steps
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c4
// CHECK:           im2col {conv_compiler.operand = "a"} {{.*}} -> tensor<1x4x2xf16>
// CHECK:           im2col {conv_compiler.operand = "b"} {{.*}} -> tensor<1x4x4xf16>
// CHECK:           linalg.generic {{.*}} outs({{.*}} : tensor<1x2x4x1xf32>)
// CHECK:           scf.yield
func.func @whole_steps(%gradient: tensor<32x1x2xf16>,
    %image: tensor<2x4x4x1x4xf16>, %sums: tensor<1x2x4x1xf32>)
    -> tensor<1x2x4x1xf32> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x32x2xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [32], [1, 2]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0] pad_value(%zero : f16)
      ins(%gradient : tensor<32x1x2xf16>) outs(%a_out : tensor<1x32x2xf16>)
      -> tensor<1x32x2xf16>
  %b_out = tensor.empty() : tensor<1x32x4xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 1, 1] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 4, 4], [1, 1, 1, 4]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x1x4xf16>) outs(%b_out : tensor<1x32x4xf16>)
      -> tensor<1x32x4xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [1, 1, 32, 2]
      : tensor<1x32x2xf16> into tensor<1x1x32x2xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [1, 1, 32, 4]
      : tensor<1x32x4xf16> into tensor<1x1x32x4xf16>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, m, n, g, k) -> (g, s, k, m)>,
                       affine_map<(s, m, n, g, k) -> (g, s, k, n)>,
                       affine_map<(s, m, n, g, k) -> (s, m, n, g)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x1x32x2xf16>, tensor<1x1x32x4xf16>)
      outs(%sums : tensor<1x2x4x1xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x2x4x1xf32>
  return %gemm : tensor<1x2x4x1xf32>
}

// 18 of gemm_k rounded up to 20: the im2col reads zeros behind the 18th.
// CHECK-LABEL: func.func @rounded_up
// CHECK:         scf.for %{{.+}} = %c0 to %c20 step %c4
// CHECK:           im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, %{{.+}}, 1]
// CHECK-SAME:        -> tensor<1x4x2xf16>
// CHECK:           im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, %{{.+}}, 0]
// CHECK-SAME:        -> tensor<1x4x12xf16>
func.func @rounded_up(%gradient: tensor<18x1x1xf16>,
    %image: tensor<2x4x4x1x3xf16>, %sums: tensor<1x2x12x1xf32>)
    -> tensor<1x2x12x1xf32> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x20x2xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [18], [1, 1]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 2, 1] pad_value(%zero : f16)
      ins(%gradient : tensor<18x1x1xf16>) outs(%a_out : tensor<1x20x2xf16>)
      -> tensor<1x20x2xf16>
  %b_out = tensor.empty() : tensor<1x20x12xf16>
  %b_k = iree_linalg_ext.im2col {conv_compiler.operand = "b"} strides = [1, 1, 1]
      dilations = [1, 1, 1] kernel_size = [1, 2, 2] offsets = [0, 0, 0]
      output_sizes = [[1], [2, 3, 3], [1, 2, 2, 3]]
      batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
      output_perm = [0, 1, 2] output_pad_low = [0, 0, 0] output_pad_high = [0, 2, 0]
      pad_value(%zero : f16)
      ins(%image : tensor<2x4x4x1x3xf16>) outs(%b_out : tensor<1x20x12xf16>)
      -> tensor<1x20x12xf16>
  %a = tensor.expand_shape %a_k [[0], [1, 2], [3]] output_shape [1, 1, 20, 2]
      : tensor<1x20x2xf16> into tensor<1x1x20x2xf16>
  %b = tensor.expand_shape %b_k [[0], [1, 2], [3]] output_shape [1, 1, 20, 12]
      : tensor<1x20x12xf16> into tensor<1x1x20x12xf16>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, m, n, g, k) -> (g, s, k, m)>,
                       affine_map<(s, m, n, g, k) -> (g, s, k, n)>,
                       affine_map<(s, m, n, g, k) -> (s, m, n, g)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x1x20x2xf16>, tensor<1x1x20x12xf16>)
      outs(%sums : tensor<1x2x12x1xf32>) attrs = {conv_compiler.role = "contraction"} {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x2x12x1xf32>
  return %gemm : tensor<1x2x12x1xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @thread_loop(!transform.any_op {transform.readonly},
      !transform.param<i64> {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %k = transform.param.constant 4 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @thread_loop failures(propagate) (%func, %k)
          : (!transform.any_op, !transform.param<i64>) -> ()
    }
    transform.yield
  }
}
