// The loop over gemm_k around the matrix instruction; the pack of each operand moves inside.

// RUN: %run_scripts %s | %filecheck

// gemm_k 128 is 8 instructions deep: four iterations of two.
// CHECK-LABEL: func.func @whole_steps
// CHECK:         linalg.pack {{.*}} -> tensor<2x1x16x16xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c8 step %c2
// CHECK:           %[[A:.+]] = linalg.pack {{.*}} -> tensor<2x2x16x16xf16>
// CHECK:           %[[B:.+]] = linalg.pack {{.*}} -> tensor<2x1x16x16xf16>
// CHECK:           iree_codegen.inner_tiled ins(%[[A]], %[[B]])
// CHECK-SAME:        kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>
// CHECK:           scf.yield
// CHECK:         linalg.unpack
func.func @whole_steps(%gradient: tensor<128x1x32xf16>, %image: tensor<128x16xf16>,
    %sums: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x128x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [128], [1, 32]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 0, 0] pad_value(%zero : f16)
      ins(%gradient : tensor<128x1x32xf16>) outs(%a_out : tensor<1x128x32xf16>)
      -> tensor<1x128x32xf16>
  %a = tensor.collapse_shape %a_k [[0, 1], [2]] : tensor<1x128x32xf16> into tensor<128x32xf16>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %image : tensor<128x32xf16>, tensor<128x16xf16>)
      outs(%sums : tensor<32x16xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x16xf32>
  return %gemm : tensor<32x16xf32>
}

// 50 x 20 rounded up to 64 x 32: two iterations, and slices of an im2col that pads.
// CHECK-LABEL: func.func @rounded_up
// CHECK:         im2col {{.*}} output_pad_high = [0, 14, 12]
// CHECK:         scf.for %{{.+}} = %c0 to %c4 step %c2
// CHECK:           tensor.extract_slice {{.*}} : tensor<1x64x32xf16> to tensor<1x32x32xf16>
// CHECK:           linalg.pack {{.*}} -> tensor<2x2x16x16xf16>
func.func @rounded_up(%gradient: tensor<50x1x20xf16>, %image: tensor<64x16xf16>,
    %sums: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f16
  %a_out = tensor.empty() : tensor<1x64x32xf16>
  %a_k = iree_linalg_ext.im2col {conv_compiler.operand = "a"} strides = [1] dilations = [1]
      kernel_size = [1] offsets = [0, 0, 0] output_sizes = [[1], [50], [1, 20]]
      batch_pos = [1] m_pos = [0] k_pos = [2] input_k_perm = [0, 1] output_perm = [0, 1, 2]
      output_pad_low = [0, 0, 0] output_pad_high = [0, 14, 12] pad_value(%zero : f16)
      ins(%gradient : tensor<50x1x20xf16>) outs(%a_out : tensor<1x64x32xf16>)
      -> tensor<1x64x32xf16>
  %a = tensor.collapse_shape %a_k [[0, 1], [2]] : tensor<1x64x32xf16> into tensor<64x32xf16>
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %image : tensor<64x32xf16>, tensor<64x16xf16>)
      outs(%sums : tensor<32x16xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x16xf32>
  return %gemm : tensor<32x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @main_loop(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @pack_16x16x16(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic">
  transform.named_sequence private @to_mfma_f32_16x16x16_f16(!transform.any_op {transform.readonly},
      !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %k_steps = transform.param.constant 2 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      %gemm = transform.structured.match ops{["linalg.generic"]} in %func
          : (!transform.any_op) -> !transform.any_op
      %packed = transform.include @pack_16x16x16 failures(propagate) (%func, %gemm)
          : (!transform.any_op, !transform.any_op) -> !transform.op<"linalg.generic">
      %mma = transform.include @to_mfma_f32_16x16x16_f16 failures(propagate) (%func, %packed)
          : (!transform.any_op, !transform.op<"linalg.generic">) -> !transform.any_op
      transform.include @main_loop failures(propagate) (%func, %mma, %k_steps)
          : (!transform.any_op, !transform.any_op, !transform.param<i64>) -> ()
    }
    transform.yield
  }
}
