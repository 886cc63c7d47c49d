// Subgroups share the workgroup tile column by column, where ours share it row by row.
// `conv-compiler inspect ... --stage schedule` prints every sequence that can be replaced.
module attributes { transform.with_named_sequence } {
transform.named_sequence private @cleanup(%func: !transform.any_op {transform.readonly})

transform.named_sequence @mma_to_subgroups(
    %func: !transform.any_op {transform.readonly},
    %subgroup_m: !transform.param<i64> {transform.readonly},
    %subgroup_n: !transform.param<i64> {transform.readonly}) {
  %mma = transform.structured.match ops{["iree_codegen.inner_tiled"]} in %func
      : (!transform.any_op) -> !transform.any_op
  %share, %subgroups = transform.structured.tile_using_forall %mma
      tile_sizes [%subgroup_m, %subgroup_n]
      (mapping = [#gpu.warp<linear_dim_0>, #gpu.warp<linear_dim_1>])
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op)
  %lanes = transform.iree.distribute_inner_tiled %share
      : (!transform.any_op) -> !transform.any_op
  transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
  transform.yield
}
}
