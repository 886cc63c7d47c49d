// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GEMM on vector units, for types and shapes no matrix instruction serves.
//
// Before, per kernel:             After:
//   for s, g, m, n, k               forall s, g tile, m tile, n tile       workgroups
//     P += A * B                      forall g, m piece, n piece           threads
//   A, B: im2col of a tensor            acc = 0                            registers
//                                       for k: acc += A piece * B piece    fma
//                                       P[s, g, m piece, n piece] = acc
//
// A thread owns its sums from the first k to the last: no LDS, no barrier, one order of summation.
module attributes { transform.with_named_sequence } {

transform.named_sequence private @cleanup(%func: !transform.any_op {transform.readonly})
transform.named_sequence private @slices_to_producers(
    %func: !transform.any_op {transform.readonly})

// 1. Workgroups, then threads: tile the GEMM and pull the zero fill in.
transform.named_sequence @parallel_tile(
    %func: !transform.any_op {transform.readonly},
    %g: !transform.param<i64> {transform.readonly},
    %m: !transform.param<i64> {transform.readonly},
    %n: !transform.param<i64> {transform.readonly},
    %thread_m: !transform.param<i64> {transform.readonly},
    %thread_n: !transform.param<i64> {transform.readonly}) {
  %gemm = transform.structured.match ops{["linalg.generic"]}
      attributes{conv_compiler.role = "contraction"} in %func
      : (!transform.any_op) -> !transform.any_op
  //                                                             s  g   m   n  k
  %tile, %grid = transform.structured.tile_using_forall %gemm tile_sizes [1, %g, %m, %n, 0]
      (mapping = [#iree_codegen.workgroup_mapping<z:1>, #iree_codegen.workgroup_mapping<z>,
                  #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  %fill = transform.structured.match ops{["linalg.fill"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %fill_in, %grid_1 = transform.structured.fuse_into_containing_op %fill into %grid
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  // Neighbouring threads take neighbouring groups, then n, then m: in channels-last tensors that
  // is the order of memory.
  %ordered = transform.structured.interchange %tile iterator_interchange = [0, 2, 3, 1, 4]
      : (!transform.any_op) -> !transform.any_op
  //           s   m          n      g  k
  %piece, %threads = transform.structured.tile_using_forall %ordered
      tile_sizes [1, %thread_m, %thread_n, 1, 0]
      (mapping = [#gpu.thread<linear_dim_3>, #gpu.thread<linear_dim_2>,
                  #gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  %fill_piece, %threads_1 = transform.structured.fuse_into_containing_op %fill_in into %threads
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// 2. The loop over k inside a thread, with both im2col reads in it.
transform.named_sequence @thread_loop(
    %func: !transform.any_op {transform.readonly},
    %k: !transform.param<i64> {transform.readonly}) {
  %gemm = transform.structured.match ops{["linalg.generic"]}
      attributes{conv_compiler.role = "contraction"} in %func
      : (!transform.any_op) -> !transform.any_op
  //                                                            s  m  n  g  k
  %step, %loop = transform.structured.tile_using_for %gemm tile_sizes [0, 0, 0, 0, %k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.include @slices_to_producers failures(propagate) (%func) : (!transform.any_op) -> ()
  %a = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %b = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "b"} in %func : (!transform.any_op) -> !transform.any_op
  %loop_1 = transform.structured.match ops{["scf.for"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %a_in, %loop_2 = transform.structured.fuse_into_containing_op %a into %loop_1
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %b_in, %loop_3 = transform.structured.fuse_into_containing_op %b into %loop_2
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}
}
