// Steps every schedule shares.
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
}
