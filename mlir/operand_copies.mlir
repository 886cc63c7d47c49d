// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step 3b of implicit_gemm.mlir: how threads share the copy of an operand's tile to LDS.
//
// The tile's axes are [q,] k step (r), m or n step (i), row, k. A thread copies pieces of `row` by
// `k` elements. IREE gives some instructions two axes for row (`row2`) or k (`k2`).
module attributes { transform.with_named_sequence } {

// Adjacent threads run along k, then along rows, then along k steps: for an operand that is
// contiguous along rows, or one whose tile has one k step.
transform.named_sequence @threads_ri_row_k(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, %row, %k]
      (mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_ri_row_k2(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_4>, #gpu.thread<linear_dim_3>,
                  #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>,
                  #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_ri_row2_k2(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, 1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_5>, #gpu.thread<linear_dim_4>,
                  #gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_qri_row_k(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, 1, %row, %k]
      (mapping = [#gpu.thread<linear_dim_4>, #gpu.thread<linear_dim_3>,
                  #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>,
                  #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_qri_row_k2(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, 1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_5>, #gpu.thread<linear_dim_4>,
                  #gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_qri_row2_k2(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, 1, 1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_6>, #gpu.thread<linear_dim_5>,
                  #gpu.thread<linear_dim_4>, #gpu.thread<linear_dim_3>,
                  #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>,
                  #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}

// Adjacent threads run along k, then along k steps, then along rows, so that they read all that the
// tile has of a row. The loops are interchanged first, because the last axis of a loop over threads
// is the fastest. passes/pad_k_steps.py keeps these writes to LDS apart. They run on AMD chips alone,
// where an instruction has one axis for row and one for k.
transform.named_sequence @threads_along_k_ri_row_k(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %generic = transform.structured.generalize %copy : (!transform.any_op) -> !transform.any_op
  %along_k = transform.structured.interchange %generic iterator_interchange = [1, 2, 0, 3]
      : (!transform.any_op) -> !transform.any_op
  %piece, %threads = transform.structured.tile_using_forall %along_k
      tile_sizes [1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_along_k_qri_row_k(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %generic = transform.structured.generalize %copy : (!transform.any_op) -> !transform.any_op
  %along_k = transform.structured.interchange %generic iterator_interchange = [0, 2, 3, 1, 4]
      : (!transform.any_op) -> !transform.any_op
  %piece, %threads = transform.structured.tile_using_forall %along_k
      tile_sizes [1, 1, %row, 1, %k]
      (mapping = [#gpu.thread<linear_dim_4>, #gpu.thread<linear_dim_3>,
                  #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>,
                  #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}

// For transposed reads of LDS the tile's axes are [q,] k step, m or n step, k, row. Adjacent
// threads run along rows, then along k.
transform.named_sequence @threads_ri_k_row(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, %k, %row]
      (mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
transform.named_sequence @threads_qri_k_row(
    %func: !transform.any_op {transform.readonly},
    %copy: !transform.any_op {transform.consumed},
    %row: !transform.param<i64> {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  %piece, %threads = transform.structured.tile_using_forall %copy
      tile_sizes [1, 1, 1, %k, %row]
      (mapping = [#gpu.thread<linear_dim_4>, #gpu.thread<linear_dim_3>,
                  #gpu.thread<linear_dim_2>, #gpu.thread<linear_dim_1>,
                  #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %threads : !transform.any_op
}
}
