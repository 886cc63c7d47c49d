// The loops over pixels (q) and over gemm_k inside a pixel (r) become one loop around the matrix
// instruction; the pack of each operand moves inside.

// RUN: %run_scripts %s | %filecheck

// Five pixels, 64 images of each: two iterations a pixel of two instructions, ten in all.
// CHECK-LABEL: func.func @two_trips_a_pixel
// CHECK:         linalg.pack {{.*}} -> tensor<2x1x16x16xf32>
// CHECK:         scf.for %[[I:.+]] = %c0 to %c10 step %c1
// CHECK:           affine.delinearize_index %[[I]] into (5, 2)
// CHECK:           %[[A:.+]] = linalg.pack {{.*}} -> tensor<1x2x2x16x16xf16>
// CHECK:           %[[B:.+]] = linalg.pack {{.*}} -> tensor<1x2x1x16x16xf16>
// CHECK:           iree_codegen.inner_tiled ins(%[[A]], %[[B]])
// CHECK-SAME:        kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>
// CHECK:         linalg.unpack
// CHECK-NOT:     scf.for
func.func @two_trips_a_pixel(%gradient: tensor<5x64x32xf16>, %image: tensor<5x64x16xf16>,
    %sums: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(m, n, q, r) -> (q, r, m)>, affine_map<(m, n, q, r) -> (q, r, n)>,
                       affine_map<(m, n, q, r) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%gradient, %image : tensor<5x64x32xf16>, tensor<5x64x16xf16>)
      outs(%sums : tensor<32x16xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x16xf32>
  return %gemm : tensor<32x16xf32>
}

// A pixel in one iteration: the loop is that over pixels.
// CHECK-LABEL: func.func @one_trip_a_pixel
// CHECK:         scf.for %{{.+}} = %c0 to %c5 step %c1
// CHECK-NOT:       affine.delinearize_index
// CHECK:           iree_codegen.inner_tiled
func.func @one_trip_a_pixel(%gradient: tensor<5x32x32xf16>, %image: tensor<5x32x16xf16>,
    %sums: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %gemm = linalg.generic {
      indexing_maps = [affine_map<(m, n, q, r) -> (q, r, m)>, affine_map<(m, n, q, r) -> (q, r, n)>,
                       affine_map<(m, n, q, r) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%gradient, %image : tensor<5x32x32xf16>, tensor<5x32x16xf16>)
      outs(%sums : tensor<32x16xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x_f32 = arith.extf %x : f16 to f32
    %y_f32 = arith.extf %y : f16 to f32
    %product = arith.mulf %x_f32, %y_f32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<32x16xf32>
  return %gemm : tensor<32x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @pixel_loop(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}, !transform.param<i64> {transform.readonly})
  transform.named_sequence private @pack_16x16xqx16(!transform.any_op {transform.readonly},
      !transform.any_op {transform.consumed}) -> !transform.op<"linalg.generic">
  transform.named_sequence private @to_mfma_f32_16x16x16_f16(!transform.any_op {transform.readonly},
      !transform.op<"linalg.generic"> {transform.readonly}) -> !transform.any_op
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %k_steps = transform.param.constant 2 : i64 -> !transform.param<i64>
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      %gemm = transform.structured.match ops{["linalg.generic"]} in %func
          : (!transform.any_op) -> !transform.any_op
      %packed = transform.include @pack_16x16xqx16 failures(propagate) (%func, %gemm)
          : (!transform.any_op, !transform.any_op) -> !transform.op<"linalg.generic">
      %mma = transform.include @to_mfma_f32_16x16x16_f16 failures(propagate) (%func, %packed)
          : (!transform.any_op, !transform.op<"linalg.generic">) -> !transform.any_op
      transform.include @pixel_loop failures(propagate) (%func, %mma, %k_steps)
          : (!transform.any_op, !transform.any_op, !transform.param<i64>) -> ()
    }
    transform.yield
  }
}
