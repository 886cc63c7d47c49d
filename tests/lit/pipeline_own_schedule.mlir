// A user's own script: this file's sequence takes the place of ours, the rest stays.

// RUN: %conv_compiler inspect --target gfx942 --tile 128x64x32 --schedule %s \
// RUN:   -n 16 -k 128 -c 64 --image 14x14 --filter 3x3 --pad 1 \
// RUN:   --stage schedule --stage isa > %t
// RUN: %filecheck --input-file %t
// What is printed is a whole schedule, and means the same when it is given back.
// RUN: %conv_compiler inspect --target gfx942 --tile 128x64x32 --schedule %s \
// RUN:   -n 16 -k 128 -c 64 --image 14x14 --filter 3x3 --pad 1 --stage schedule > %t.whole
// RUN: %conv_compiler inspect --target gfx942 --tile 128x64x32 --schedule %t.whole \
// RUN:   -n 16 -k 128 -c 64 --image 14x14 --filter 3x3 --pad 1 \
// RUN:   --stage schedule --stage isa > %t.again
// RUN: diff %t %t.again

// CHECK-LABEL: transform.named_sequence @mma_to_subgroups
// CHECK:         mapping = [#gpu.warp<linear_dim_0>, #gpu.warp<linear_dim_1>]
// CHECK-LABEL: transform.named_sequence @entry_threads
// CHECK:         transform.include @mma_to_subgroups
// CHECK:       ----- isa -----
// CHECK:       v_mfma_f32_{{16x16x16|32x32x8}}_f16
// CHECK:       .private_segment_fixed_size: 0
// CHECK:       .vgpr_spill_count: 0
module attributes { transform.with_named_sequence } {
transform.named_sequence private @cleanup(%func: !transform.any_op {transform.readonly})

// Subgroups share the tile column by column instead of row by row.
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
