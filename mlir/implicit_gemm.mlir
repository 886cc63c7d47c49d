// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Implicit GEMM on matrix units: P[s, g, m, n] += A[g, s, k, m] * B[g, s, k, n].
//
// Before, per kernel:             After:
//   for s, g, m, n, k               forall s, g, m tile, n tile            workgroups
//     P += A * B                      acc = 0                              registers
//   A, B: im2col of a tensor          for k tile (or for q, k tile)        software pipelined
//                                       forall threads: im2col -> registers, transposed -> LDS
//                                       forall subgroups, lanes: acc += mma(LDS A, LDS B)
//                                     P[s, g, m tile, n tile] = acc
//
// The LDS tile of an operand is [k step][m or n step][m or n][k]: a lane finds the k elements of
// its fragment side by side and reads them with one instruction.
//
// The way, in the order of execution. An entry holds the sizes of one kernel and includes the steps
// below it. The lines of gpu_matrix.pipeline run the entries and IREE's passes between them.
//
//   @normalise (normalise/implicit_gemm.mlir)
//     0. @im2col of A and B: the convolution becomes this GEMM; @split_k into parts s; @sum_parts
//   @entry_take_reversed
//     passes/take_reversed.py, where the taps of an operand are read in reverse order
//   @entry_workgroup
//     1. @contraction or @contraction_and_store, @masked_store, @workgroups_*, @contraction_into_grid,
//        @operands_into_grid
//   @entry_k_loop
//     2. @pack_*, @to_<instruction> (both in matrix_instructions.mlir), @main_loop or @pixel_loop
//        -- gpu_matrix.pipeline: packs become reshapes and transposes
//   @entry_threads
//     3. @operand_copies, @threads_*, @read_in_threads
//     4. @mma_to_subgroups
//     5. @mark_source_*
//        -- gpu_vectors.pipeline: loops over threads are fused, operations become vectors
//   @entry_reads
//     6. @keep_last_pixel
//        -- gpu_vectors.pipeline: masks; gpu_buffers.pipeline: buffers, LDS, matrix instructions,
//           software pipeline
//   @entry_read_reversed
//     passes/read_reversed.py, for the same operand
//   @entry_skip_taps
//     passes/skip_taps.py, where tiles of rows meet different places of the window
//   @entry_load_to_lds
//     passes/load_to_lds.py, where loads write to LDS: it makes the software pipeline
//   @entry_iterations
//     7. @unroll_pipelined
//        -- gpu_buffers.pipeline: addresses; then passes/interleave.py orders the main loop
//
// Sizes are parameters. gemm_k of a part must hold two k tiles or more, or there is no loop to
// pipeline. Axes: s part of gemm_k, g group, m row, t tap, n column, q summed loop outside the
// tile, r and k gemm_k.
module attributes { transform.with_named_sequence } {

transform.named_sequence private @cleanup(%func: !transform.any_op {transform.readonly})
transform.named_sequence private @slices_to_producers(
    %func: !transform.any_op {transform.readonly})

// 1. Workgroups: one for each (m, n) tile of one part of one group (and of one tap).
// 1a. What is tiled: the contraction, or the op that stores its sums as the result. Where tiles have a
//     rest, @masked_store stores what is in the result, behind either of them.
transform.named_sequence @contraction(%func: !transform.any_op {transform.readonly})
    -> !transform.any_op {
  %contraction = transform.structured.match ops{["linalg.generic"]} in %func
      : (!transform.any_op) -> !transform.any_op
  transform.yield %contraction : !transform.any_op
}
transform.named_sequence @contraction_and_store(%func: !transform.any_op {transform.readonly})
    -> (!transform.any_op, !transform.any_op) {
  %ops = transform.structured.match ops{["linalg.generic"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %contraction, %store = transform.split_handle %ops
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield %contraction, %store : !transform.any_op, !transform.any_op
}

transform.named_sequence @masked_store(%func: !transform.any_op {transform.readonly})
    -> !transform.any_op {
  %store = transform.structured.match ops{["iree_linalg_ext.map_store"]} in %func
      : (!transform.any_op) -> !transform.any_op
  transform.yield %store : !transform.any_op
}

// 1b. The grid. The last axis is the fastest; with `parts_first` s is, so that the dies of a chip
//     whose L2 is divided have parts of their own. There is a t where each tap has workgroups of
//     its own.
transform.named_sequence @workgroups_sgmn(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed},
    %m: !transform.param<i64> {transform.readonly},
    %n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  //                                                      s  g   m   n
  %tile, %grid = transform.structured.tile_using_forall %op tile_sizes [1, 1, %m, %n]
      (mapping = [#iree_codegen.workgroup_mapping<z:1>, #iree_codegen.workgroup_mapping<z>,
                  #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %grid : !transform.any_op
}
transform.named_sequence @workgroups_sgmn_parts_first(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed},
    %m: !transform.param<i64> {transform.readonly},
    %n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  //                                                      s  g   m   n
  %tile, %grid = transform.structured.tile_using_forall %op tile_sizes [1, 1, %m, %n]
      (mapping = [#iree_codegen.workgroup_mapping<x>, #iree_codegen.workgroup_mapping<z:1>,
                  #iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %grid : !transform.any_op
}
transform.named_sequence @workgroups_sgmtn(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed},
    %m: !transform.param<i64> {transform.readonly},
    %n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  //                                                      s  g   m  t   n
  %tile, %grid = transform.structured.tile_using_forall %op tile_sizes [1, 1, %m, 1, %n]
      (mapping = [#iree_codegen.workgroup_mapping<z:2>, #iree_codegen.workgroup_mapping<z:1>,
                  #iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>,
                  #iree_codegen.workgroup_mapping<x>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %grid : !transform.any_op
}
transform.named_sequence @workgroups_sgmtn_parts_first(
    %func: !transform.any_op {transform.readonly},
    %op: !transform.any_op {transform.consumed},
    %m: !transform.param<i64> {transform.readonly},
    %n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
  //                                                      s  g   m  t   n
  %tile, %grid = transform.structured.tile_using_forall %op tile_sizes [1, 1, %m, 1, %n]
      (mapping = [#iree_codegen.workgroup_mapping<x>, #iree_codegen.workgroup_mapping<z:2>,
                  #iree_codegen.workgroup_mapping<z:1>, #iree_codegen.workgroup_mapping<z>,
                  #iree_codegen.workgroup_mapping<y>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  transform.yield %grid : !transform.any_op
}

// 1c. Where the store is tiled, the contraction moves into the grid.
transform.named_sequence @contraction_into_grid(
    %func: !transform.any_op {transform.readonly},
    %contraction: !transform.any_op {transform.consumed},
    %grid: !transform.any_op {transform.readonly}) {
  %in, %grid_1 = transform.structured.fuse_into_containing_op %contraction into %grid
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// 1d. The zero fill and the operands' im2col move into the grid, and unit loops go away. Moving an
//     im2col fails where no slice of it is taken, as in a grid of one workgroup.
transform.named_sequence @a_into_grid(%func: !transform.any_op {transform.readonly}) {
  %a = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %grid = transform.structured.match ops{["scf.forall"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %a_in, %grid_1 = transform.structured.fuse_into_containing_op %a into %grid
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
transform.named_sequence @b_into_grid(%func: !transform.any_op {transform.readonly}) {
  %b = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "b"} in %func : (!transform.any_op) -> !transform.any_op
  %grid = transform.structured.match ops{["scf.forall"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %b_in, %grid_1 = transform.structured.fuse_into_containing_op %b into %grid
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

transform.named_sequence @operands_into_grid(
    %func: !transform.any_op {transform.readonly},
    %grid: !transform.any_op {transform.readonly}) {
  %fill = transform.structured.match ops{["linalg.fill"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %fill_in, %grid_1 = transform.structured.fuse_into_containing_op %fill into %grid
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.include @slices_to_producers failures(propagate) (%func) : (!transform.any_op) -> ()

  transform.include @a_into_grid failures(suppress) (%func) : (!transform.any_op) -> ()
  transform.include @b_into_grid failures(suppress) (%func) : (!transform.any_op) -> ()
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()

  transform.apply_patterns to %func {
    transform.apply_patterns.linalg.fold_unit_extent_dims_via_reshapes
    transform.apply_patterns.tensor.bubble_up_extract_slice
    transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
    transform.apply_patterns.linalg.swap_extract_slice_with_fill
    transform.apply_patterns.canonicalization
  } : !transform.any_op
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// 2. The main loop, in matrix instructions.
// 2a. The loops are packed to the instruction's shape: @pack_<m>x<n>x<k>, or @pack_<m>x<n>xqx<k>
//     where q is a loop of its own. A store is packed as the sums are (@pack_<m>x<n>), so that it
//     takes them as they come. One sequence a shape, in matrix_instructions.mlir. For transposed
//     reads of LDS, @rows_innermost_a and _b exchange the last two axes of an operand's tile.
// 2b. The packed contraction becomes matrix instructions: @to_<instruction>, one sequence each, in
//     matrix_instructions.mlir.
//
transform.named_sequence @rows_innermost_a(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.consumed})
    -> !transform.op<"linalg.generic"> {
  %operand = transform.get_producer_of_operand %packed[0]
      : (!transform.op<"linalg.generic">) -> !transform.op<"linalg.pack">
  %packed_1, %operand_1, %none = transform.structured.pack_transpose %operand
      with_compute_op(%packed) inner_perm = [1, 0]
      : (!transform.op<"linalg.pack">, !transform.op<"linalg.generic">)
      -> (!transform.op<"linalg.generic">, !transform.op<"linalg.pack">, !transform.any_op)
  transform.yield %packed_1 : !transform.op<"linalg.generic">
}
transform.named_sequence @rows_innermost_b(
    %func: !transform.any_op {transform.readonly},
    %packed: !transform.op<"linalg.generic"> {transform.consumed})
    -> !transform.op<"linalg.generic"> {
  %operand = transform.get_producer_of_operand %packed[1]
      : (!transform.op<"linalg.generic">) -> !transform.op<"linalg.pack">
  %packed_1, %operand_1, %none = transform.structured.pack_transpose %operand
      with_compute_op(%packed) inner_perm = [1, 0]
      : (!transform.op<"linalg.pack">, !transform.op<"linalg.generic">)
      -> (!transform.op<"linalg.generic">, !transform.op<"linalg.pack">, !transform.any_op)
  transform.yield %packed_1 : !transform.op<"linalg.generic">
}

// 2c. The loop over gemm_k: `k_steps` instructions deep, operand packs inside.
transform.named_sequence @main_loop(
    %func: !transform.any_op {transform.readonly},
    %mma: !transform.any_op {transform.consumed},
    %k_steps: !transform.param<i64> {transform.readonly}) {
  %a = transform.get_producer_of_operand %mma[0] : (!transform.any_op) -> !transform.any_op
  %b = transform.get_producer_of_operand %mma[1] : (!transform.any_op) -> !transform.any_op
  //                                                           m  n  k
  %step, %loop = transform.structured.tile_using_for %mma tile_sizes [0, 0, %k_steps]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
  %a_in, %loop_1 = transform.structured.fuse_into_containing_op %a into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %b_in, %loop_2 = transform.structured.fuse_into_containing_op %b into %loop_1
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.include @slices_to_producers failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// 2c. The same where q is a loop of its own around that over r: both become one loop, which is
//     what gets pipelined.
transform.named_sequence @pixel_loop(
    %func: !transform.any_op {transform.readonly},
    %mma: !transform.any_op {transform.consumed},
    %k_steps: !transform.param<i64> {transform.readonly}) {
  %a = transform.get_producer_of_operand %mma[0] : (!transform.any_op) -> !transform.any_op
  %b = transform.get_producer_of_operand %mma[1] : (!transform.any_op) -> !transform.any_op
  //                                                                     m  n  q  r
  %step, %q_loop, %r_loop = transform.structured.tile_using_for %mma tile_sizes [0, 0, 1, %k_steps]
      : (!transform.any_op, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %a_in, %r_loop_1 = transform.structured.fuse_into_containing_op %a into %r_loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %b_in, %r_loop_2 = transform.structured.fuse_into_containing_op %b into %r_loop_1
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %loop = transform.loop.coalesce %q_loop : (!transform.any_op) -> !transform.any_op
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.include @slices_to_producers failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// 3. Threads, after the packs have become reshapes and transposes.
// 3a. The two transposing copies of the main loop.
transform.named_sequence @operand_copies(%func: !transform.any_op {transform.readonly})
    -> (!transform.any_op, !transform.any_op) {
  %mma = transform.structured.match ops{["iree_codegen.inner_tiled"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %loop = transform.get_parent_op %mma <op_name = "scf.for">
      : (!transform.any_op) -> !transform.any_op
  %copies = transform.structured.match ops{["linalg.transpose"]} in %loop
      : (!transform.any_op) -> !transform.any_op
  %a, %b = transform.split_handle %copies
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield %a, %b : !transform.any_op, !transform.any_op
}

// 3b. The pieces that threads copy: @threads_*, or @threads_along_k_* where the operand is contiguous
//     along gemm_k. One sequence a number of axes, in operand_copies.mlir.
//
// 3c. Each thread reads its own piece of the source, transposes it in registers and writes it to
//     LDS.
transform.named_sequence @read_in_threads(
    %func: !transform.any_op {transform.readonly},
    %a_threads: !transform.any_op {transform.readonly},
    %b_threads: !transform.any_op {transform.readonly}) {
  transform.include @slices_to_producers failures(propagate) (%func) : (!transform.any_op) -> ()
  %a = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %b = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "b"} in %func : (!transform.any_op) -> !transform.any_op
  %a_read, %a_threads_1 = transform.structured.fuse_into_containing_op %a into %a_threads
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %b_read, %b_threads_1 = transform.structured.fuse_into_containing_op %b into %b_threads
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

// 4. Subgroups share the instructions of a tile, lanes their fragments.
transform.named_sequence @mma_to_subgroups(
    %func: !transform.any_op {transform.readonly},
    %subgroup_m: !transform.param<i64> {transform.readonly},
    %subgroup_n: !transform.param<i64> {transform.readonly}) {
  %mma = transform.structured.match ops{["iree_codegen.inner_tiled"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %share, %subgroups = transform.structured.tile_using_forall %mma
      tile_sizes [%subgroup_m, %subgroup_n]
      (mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  %lanes = transform.iree.distribute_inner_tiled %share
      : (!transform.any_op) -> !transform.any_op
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// 5. Tail masking. The last part of a split may be longer than what is left of q; both operands
//    are then zero there, by a select for every register. One zero makes the product zero: the
//    operand that is a pixel at a time keeps what it reads instead, which is its last pixel.
//    Before its im2col is gone, what it reads is marked. Where this fails nothing is marked.
transform.named_sequence @mark_source_a(%func: !transform.any_op {transform.readonly}) {
  %operand = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %source = transform.get_producer_of_operand %operand[0]
      : (!transform.any_op) -> !transform.any_op
  transform.annotate %source "conv_compiler.unmasked" : !transform.any_op
  transform.yield
}
transform.named_sequence @mark_source_b(%func: !transform.any_op {transform.readonly}) {
  %operand = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "b"} in %func : (!transform.any_op) -> !transform.any_op
  %source = transform.get_producer_of_operand %operand[0]
      : (!transform.any_op) -> !transform.any_op
  transform.annotate %source "conv_compiler.unmasked" : !transform.any_op
  transform.yield
}
transform.named_sequence @mark_reversed_a(%func: !transform.any_op {transform.readonly}) {
  %operand = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %source = transform.get_producer_of_operand %operand[0]
      : (!transform.any_op) -> !transform.any_op
  transform.annotate %source "conv_compiler.reversed_reads" : !transform.any_op
  transform.yield
}
transform.named_sequence @mark_rows_a(%func: !transform.any_op {transform.readonly}) {
  %operand = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "a"} in %func : (!transform.any_op) -> !transform.any_op
  %source = transform.get_producer_of_operand %operand[0]
      : (!transform.any_op) -> !transform.any_op
  transform.annotate %source "conv_compiler.unmasked_rows" : !transform.any_op
  transform.yield
}
transform.named_sequence @mark_rows_b(%func: !transform.any_op {transform.readonly}) {
  %operand = transform.structured.match ops{["iree_linalg_ext.im2col"]}
      attributes{conv_compiler.operand = "b"} in %func : (!transform.any_op) -> !transform.any_op
  %source = transform.get_producer_of_operand %operand[0]
      : (!transform.any_op) -> !transform.any_op
  transform.annotate %source "conv_compiler.unmasked_rows" : !transform.any_op
  transform.yield
}

// 6. Tail masking, when it is vectors: of a mask's length, (elements that there are) * (1 or 0: a
//    pixel or none), the second factor becomes 1. Where all are such, the kernel is marked
//    (`ir/attributes.py`, LAST_PIXEL). Masks that are made otherwise stay: right, if slower.
transform.named_sequence @keep_last_pixel(%func: !transform.any_op {transform.readonly}) {
  %source = transform.structured.match attributes{conv_compiler.unmasked} in %func
      : (!transform.any_op) -> !transform.any_op
  %reads = transform.get_consumers_of_result %source[0]
      : (!transform.any_op) -> !transform.any_op
  %masks = transform.foreach %reads : !transform.any_op -> !transform.any_op {
  ^read(%read: !transform.any_op):
    %mask = transform.get_operand %read[-1] : (!transform.any_op) -> !transform.any_value
    %create = transform.get_defining_op %mask : (!transform.any_value) -> !transform.any_op
    transform.match.operation_name %create ["vector.create_mask"] : !transform.any_op
    %length = transform.get_producer_of_operand %create[0]
        : (!transform.any_op) -> !transform.any_op
    transform.match.operation_name %length ["arith.muli"] : !transform.any_op
    %is_pixel = transform.get_producer_of_operand %length[1]
        : (!transform.any_op) -> !transform.any_op
    transform.match.operation_name %is_pixel ["affine.max"] : !transform.any_op
    %one = transform.param.constant affine_map<(d0) -> (1)> -> !transform.any_param
    transform.annotate %is_pixel "map" = %one : !transform.any_op, !transform.any_param
    transform.yield %create : !transform.any_op
  }
  %kernel = transform.get_parent_op %masks <deduplicate, op_name = "func.func">
      : (!transform.any_op) -> !transform.any_op
  %kept = transform.param.constant [["conv-compiler-last-pixel", "kept"]] -> !transform.any_param
  transform.annotate %kernel "passthrough" = %kept : !transform.any_op, !transform.any_param
  transform.yield
}
//    Rows that fill no tile. What is read of rows beyond the result reaches no sum that is stored, so
//    it may be anything. Where gemm_k has no tail either, each read has all its elements: both
//    factors of a mask's length, min(elements up to the end, elements of the read) * (1 or 0: a row
//    or none), become constants, the first more than a read has.
transform.named_sequence @keep_rows(%func: !transform.any_op {transform.readonly}) {
  %sources = transform.structured.match attributes{conv_compiler.unmasked_rows} in %func
      : (!transform.any_op) -> !transform.any_op
  %masks = transform.foreach %sources : !transform.any_op -> !transform.any_op {
  ^source(%source: !transform.any_op):
    %reads = transform.get_consumers_of_result %source[0]
        : (!transform.any_op) -> !transform.any_op
    %of_source = transform.foreach %reads : !transform.any_op -> !transform.any_op {
    ^read(%read: !transform.any_op):
      %mask = transform.get_operand %read[-1] : (!transform.any_op) -> !transform.any_value
      %create = transform.get_defining_op %mask : (!transform.any_value) -> !transform.any_op
      transform.match.operation_name %create ["vector.create_mask"] : !transform.any_op
      %length = transform.get_producer_of_operand %create[0]
          : (!transform.any_op) -> !transform.any_op
      transform.match.operation_name %length ["arith.muli"] : !transform.any_op
      %elements = transform.get_producer_of_operand %length[0]
          : (!transform.any_op) -> !transform.any_op
      transform.match.operation_name %elements ["affine.min"] : !transform.any_op
      %is_row = transform.get_producer_of_operand %length[1]
          : (!transform.any_op) -> !transform.any_op
      transform.match.operation_name %is_row ["affine.max"] : !transform.any_op
      %all = transform.param.constant affine_map<(d0) -> (65536)> -> !transform.any_param
      transform.annotate %elements "map" = %all : !transform.any_op, !transform.any_param
      %one = transform.param.constant affine_map<(d0) -> (1)> -> !transform.any_param
      transform.annotate %is_row "map" = %one : !transform.any_op, !transform.any_param
      transform.yield %create : !transform.any_op
    }
    transform.yield %of_source : !transform.any_op
  }
  %kernel = transform.get_parent_op %masks <deduplicate, op_name = "func.func">
      : (!transform.any_op) -> !transform.any_op
  %kept = transform.param.constant [["conv-compiler-last-pixel", "kept"]] -> !transform.any_param
  transform.annotate %kernel "passthrough" = %kept : !transform.any_op, !transform.any_param
  transform.yield
}
transform.named_sequence @entry_reads(%func: !transform.any_op {transform.readonly}) {
  transform.include @keep_last_pixel failures(suppress) (%func) : (!transform.any_op) -> ()
  transform.include @keep_rows failures(suppress) (%func) : (!transform.any_op) -> ()
  transform.yield
}

// Places in the pipeline, at which passes of ours run (compiler/kernel_passes.py).
transform.named_sequence @entry_take_reversed(%func: !transform.any_op {transform.readonly}) {
  transform.yield
}
transform.named_sequence @entry_read_reversed(%func: !transform.any_op {transform.readonly}) {
  transform.yield
}
transform.named_sequence @entry_skip_taps(%func: !transform.any_op {transform.readonly}) {
  transform.yield
}
transform.named_sequence @entry_load_to_lds(%func: !transform.any_op {transform.readonly}) {
  transform.yield
}

// 7. Where the operations of an iteration will be put in order (passes/interleave.py), behind the
//    software pipelining: the loop holds two iterations, so that loads refill registers that the
//    other one reads. The fence is IREE's; a loop too short for the pipeline has none.
transform.named_sequence @unroll_pipelined(%func: !transform.any_op {transform.readonly}) {
  %fence = transform.structured.match ops{["amdgpu.sched_barrier"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %loop = transform.get_parent_op %fence <op_name = "scf.for">
      : (!transform.any_op) -> !transform.any_op
  "transform.loop.unroll"(%loop) <{factor = 2 : i64}> : (!transform.any_op) -> ()
  transform.yield
}
transform.named_sequence @entry_iterations(%func: !transform.any_op {transform.readonly}) {
  transform.include @unroll_pipelined failures(suppress) (%func) : (!transform.any_op) -> ()
  transform.yield
}
}
