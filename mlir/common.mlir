// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every schedule shares.
module attributes { transform.with_named_sequence } {

// Canonical form between steps: folds the slices of tiling away.
transform.named_sequence @cleanup(%func: !transform.any_op {transform.readonly}) {
  transform.apply_patterns to %func {
    transform.apply_patterns.canonicalization
    transform.apply_patterns.linalg.tiling_canonicalization
    transform.apply_patterns.scf.for_loop_canonicalization
    transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
  } : !transform.any_op
  transform.apply_cse to %func : !transform.any_op
  transform.yield
}

// Bring slices up to the im2col they read, past the reshapes in between.
transform.named_sequence @slices_to_producers(%func: !transform.any_op {transform.readonly}) {
  transform.apply_patterns to %func {
    transform.apply_patterns.tensor.bubble_up_extract_slice
    transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
    transform.apply_patterns.canonicalization
  } : !transform.any_op
  transform.yield
}

// An entry behind the one that makes the main loop: it fails where a user's script left none
// (`strategies/own_schedule.py` knows the words). No sequence of a user's takes its place.
transform.named_sequence @entry_loop_check(%func: !transform.any_op {transform.readonly}) {
  %loops = transform.structured.match ops{["scf.for"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %count = transform.num_associations %loops : (!transform.any_op) -> !transform.param<i64>
  %none = transform.param.constant 0 : i64 -> !transform.param<i64>
  transform.match.param.cmpi gt %count, %none : !transform.param<i64>
  transform.yield
}
}
