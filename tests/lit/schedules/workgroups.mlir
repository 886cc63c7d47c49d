// Where each tap has workgroups of its own: a grid of five axes, the columns or the parts fastest.
// (operands_into_grid.mlir has the grid of four.)

// RUN: %run_scripts %s | %filecheck

// Tiles of 32 x 16: 2 parts, 1 group, 1 x 3 x 3 tiles of rows, taps and columns.
// CHECK-LABEL: func.func @taps
// CHECK:         scf.forall {{.*}} in (2, 1, 1, 3, 3)
// CHECK:           linalg.generic
// CHECK:         mapping = [#iree_codegen.workgroup_mapping<z:2>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<z:1>, #iree_codegen.workgroup_mapping<z>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]
func.func @taps(%a: tensor<1x2x64x32xf16>, %b: tensor<1x2x64x3x48xf16>, %sums: tensor<2x1x32x3x48xf32>)
    -> tensor<2x1x32x3x48xf32> {
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, t, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, t, n, k) -> (g, s, k, t, n)>,
                       affine_map<(s, g, m, t, n, k) -> (s, g, m, t, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x2x64x32xf16>, tensor<1x2x64x3x48xf16>)
      outs(%sums : tensor<2x1x32x3x48xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x1x32x3x48xf32>
  return %gemm : tensor<2x1x32x3x48xf32>
}

// CHECK-LABEL: func.func @dies
// CHECK:         scf.forall {{.*}} in (2, 1, 1, 3, 3)
// CHECK:         mapping = [#iree_codegen.workgroup_mapping<x>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<z:2>, #iree_codegen.workgroup_mapping<z:1>,
// CHECK-SAME:      #iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>]
func.func @dies(%a: tensor<1x2x64x32xf16>, %b: tensor<1x2x64x3x48xf16>, %sums: tensor<2x1x32x3x48xf32>)
    -> tensor<2x1x32x3x48xf32> {
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(s, g, m, t, n, k) -> (g, s, k, m)>,
                       affine_map<(s, g, m, t, n, k) -> (g, s, k, t, n)>,
                       affine_map<(s, g, m, t, n, k) -> (s, g, m, t, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x2x64x32xf16>, tensor<1x2x64x3x48xf16>)
      outs(%sums : tensor<2x1x32x3x48xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<2x1x32x3x48xf32>
  return %gemm : tensor<2x1x32x3x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @workgroups_sgmtn(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @workgroups_sgmtn_parts_first(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %m = transform.param.constant 32 : i64 -> !transform.param<i64>
    %n = transform.param.constant 16 : i64 -> !transform.param<i64>
    %taps = transform.structured.match ops{["func.func"]} attributes{sym_name = "taps"} in %root
        : (!transform.any_op) -> !transform.any_op
    %taps_gemm = transform.structured.match ops{["linalg.generic"]} in %taps
        : (!transform.any_op) -> !transform.any_op
    %taps_grid = transform.include @workgroups_sgmtn failures(propagate) (%taps, %taps_gemm, %m, %n)
        : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> !transform.any_op
    %dies = transform.structured.match ops{["func.func"]} attributes{sym_name = "dies"} in %root
        : (!transform.any_op) -> !transform.any_op
    %dies_gemm = transform.structured.match ops{["linalg.generic"]} in %dies
        : (!transform.any_op) -> !transform.any_op
    %dies_grid = transform.include @workgroups_sgmtn_parts_first failures(propagate) (%dies, %dies_gemm, %m, %n)
        : (!transform.any_op, !transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> !transform.any_op
    transform.yield
  }
}
