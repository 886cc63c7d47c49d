// Subgroups share the matrix instructions of a tile, lanes their fragments.

// RUN: %run_scripts %s | %filecheck

// 4 x 2 instructions in pieces of 2 x 1: two by two subgroups; a lane holds 4 of 16 x 16 elements.
// CHECK-LABEL: func.func @two_by_two
// CHECK:         scf.forall {{.*}} in (2, 2)
// CHECK:           scf.forall {{.*}} in (64)
// CHECK:             iree_codegen.inner_tiled
// CHECK-SAME:          distributed = true
// CHECK-SAME:          : tensor<1x2x1x4xf16>, tensor<1x1x1x4xf16> into tensor<2x1x4x1xf32>
// CHECK:           mapping = [#iree_gpu.lane_id<0>]
// CHECK:         mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>]
func.func @two_by_two(%a: tensor<1x4x16x16xf16>, %b: tensor<1x2x16x16xf16>, %sums: tensor<4x2x16x16xf32>)
    -> tensor<4x2x16x16xf32> {
  %next = iree_codegen.inner_tiled ins(%a, %b) outs(%sums)
          <indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                            affine_map<(m, n, k) -> (m, n)>],
           iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>,
                             #linalg.iterator_type<reduction>],
           kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>,
           semantics = #iree_gpu.mma_semantics<distributed = false, opaque = true>,
           permutations = [array<i64: 0, 1>, array<i64: 1, 0>, array<i64: 0, 1>]>
          : tensor<1x4x16x16xf16>, tensor<1x2x16x16xf16> into tensor<4x2x16x16xf32>
  return %next : tensor<4x2x16x16xf32>
}

// 3 x 2 in pieces of 2 x 1 leaves a subgroup one short: its piece is the rest.
// CHECK-LABEL: func.func @one_short
// CHECK:         scf.forall {{.*}} in (2, 2)
// CHECK:           affine.min
func.func @one_short(%a: tensor<1x3x16x16xf16>, %b: tensor<1x2x16x16xf16>, %sums: tensor<3x2x16x16xf32>)
    -> tensor<3x2x16x16xf32> {
  %next = iree_codegen.inner_tiled ins(%a, %b) outs(%sums)
          <indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                            affine_map<(m, n, k) -> (m, n)>],
           iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>,
                             #linalg.iterator_type<reduction>],
           kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>,
           semantics = #iree_gpu.mma_semantics<distributed = false, opaque = true>,
           permutations = [array<i64: 0, 1>, array<i64: 1, 0>, array<i64: 0, 1>]>
          : tensor<1x3x16x16xf16>, tensor<1x2x16x16xf16> into tensor<3x2x16x16xf32>
  return %next : tensor<3x2x16x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @mma_to_subgroups(!transform.any_op {transform.readonly},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.param.constant 2 : i64 -> !transform.param<i64>
    %n = transform.param.constant 1 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @mma_to_subgroups failures(propagate) (%func, %m, %n)
          : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
    }
    transform.yield
  }
}
