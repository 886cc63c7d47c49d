// Threads share a copy along gemm_k: adjacent ones run along k, then along k steps, then along rows.

// RUN: %run_scripts %s | %filecheck

// Pieces of 2 rows by 4 of k: k, then 4 k steps, then rows, then the two tiles of rows.
// CHECK-LABEL: func.func @ri
// CHECK: scf.forall (%[[I:.+]], %[[ROW:.+]], %[[R:.+]], %[[K:.+]]) in (2, 8, 4, 4)
// CHECK: tensor.extract_slice {{.*}} [1, 4, 1, 2] [1, 1, 1, 1] : tensor<4x16x2x16xf16>
// CHECK: tensor.extract_slice {{.*}}[%[[R]], %[[I]], {{.*}}] [1, 1, 2, 4] [1, 1, 1, 1] : tensor<4x2x16x16xf16>
// CHECK: linalg.generic
// CHECK: mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]
func.func @ri(%memory: tensor<4x16x2x16xf16>, %lds: tensor<4x2x16x16xf16>)
    -> tensor<4x2x16x16xf16> {
  %copy = linalg.transpose ins(%memory : tensor<4x16x2x16xf16>)
      outs(%lds : tensor<4x2x16x16xf16>) permutation = [0, 2, 3, 1]
  return %copy : tensor<4x2x16x16xf16>
}

// The same with the pixel's axis outermost.
// CHECK-LABEL: func.func @qri
// CHECK: scf.forall (%{{.+}}, %{{.+}}, %{{.+}}, %[[R:.+]], %{{.+}}) in (1, 2, 8, 4, 4)
// CHECK: tensor.extract_slice {{.*}} [1, 1, 1, 2, 4] [1, 1, 1, 1, 1] : tensor<1x4x2x16x16xf16>
// CHECK: mapping = [#gpu.thread<linear_dim_4>, {{.*}}#gpu.thread<linear_dim_0>]
func.func @qri(%memory: tensor<1x4x16x2x16xf16>, %lds: tensor<1x4x2x16x16xf16>)
    -> tensor<1x4x2x16x16xf16> {
  %copy = linalg.transpose ins(%memory : tensor<1x4x16x2x16xf16>)
      outs(%lds : tensor<1x4x2x16x16xf16>) permutation = [0, 1, 3, 4, 2]
  return %copy : tensor<1x4x2x16x16xf16>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @threads_along_k_ri_row_k(
      !transform.any_op {transform.readonly}, !transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
      -> !transform.any_op
  transform.named_sequence private @threads_along_k_qri_row_k(
      !transform.any_op {transform.readonly}, !transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
      -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %row = transform.param.constant 2 : i64 -> !transform.param<i64>
    %k = transform.param.constant 4 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %ri, %qri = transform.split_handle %funcs
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %copy = transform.structured.match ops{["linalg.transpose"]} in %ri
        : (!transform.any_op) -> !transform.any_op
    transform.include @threads_along_k_ri_row_k failures(propagate) (%ri, %copy, %row, %k)
        : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> !transform.any_op
    %copy_q = transform.structured.match ops{["linalg.transpose"]} in %qri
        : (!transform.any_op) -> !transform.any_op
    transform.include @threads_along_k_qri_row_k failures(propagate) (%qri, %copy_q, %row, %k)
        : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> !transform.any_op
    transform.yield
  }
}
