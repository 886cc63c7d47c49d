// A depthwise contraction becomes a kernel of vectors and a sum of its parts.

// RUN: %conv_opt %s --pass 'depthwise{vector=2 columns=7 rows=3 unroll=1 lanes=5 threads=64 split_k=2}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'depthwise{vector=2 columns=7 rows=3 unroll=1 lanes=5 threads=64}' \
// RUN:   --pass 'depthwise{vector=2 columns=7 rows=3 unroll=1 lanes=5 threads=64}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TWICE

// Two parts of six taps of ten groups. The strip's images are 3 rows of 8 columns, of which two rows
// are the next window's too: each iteration loads 8 of the image and 7 of the gradient.
// CHECK:     flow.dispatch.region -> (tensor<2x6x10xf32>)
// CHECK:       scf.forall {{.*}} in (1, 2)
// CHECK:         scf.forall {{.*}} in (64) {{.*}} -> (tensor<6x128xf32>)
// CHECK-COUNT-16:  vector.transfer_read {{.*}} vector<2xf16>
// CHECK:           scf.for {{.*}} i32
// CHECK-COUNT-15:    vector.transfer_read {{.*}} vector<2xf16>
// CHECK-NOT:         vector.transfer_read
// CHECK:             math.fma
// CHECK:             scf.yield
// CHECK-COUNT-6:   vector.transfer_write
// CHECK:           #gpu.thread<linear_dim_0>
// The sums of 12 strips that a workgroup has side by side, by the threads that a tap and groups have.
// CHECK:         scf.forall {{.*}} in (64) {{.*}} -> (tensor<6x10xf32>)
// CHECK-COUNT-12:  vector.transfer_read {{.*}} vector<2xf32>
// CHECK:           scf.if
// CHECK:       conv_compiler.role = "contraction"
// CHECK-SAME:  workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>
// CHECK:     } count() -> (index, index, index) {
// CHECK:       iree_tensor_ext.dispatch.workgroup_count_from_slice
// CHECK:     conv_compiler.role = "reduction"

// TWICE: role contraction: on no op that names its loops

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d2 + d6, d3 + d7, d0, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6, d7, d0, d1)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<2x6x8x10x1xf16>, %arg1: tensor<2x6x7x10x1xf16>) -> tensor<10x1x3x2x1xf16> attributes {iree.reflection = {conv_compiler.direction = "bwd_weight"}} {
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 1, 0, 0, 0] high[0, 1, 0, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<2x6x8x10x1xf16> to tensor<2x8x8x10x1xf16>
    %0 = tensor.empty() : tensor<10x1x3x2x1xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<10x1x3x2x1xf32>) -> tensor<10x1x3x2x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %arg1 : tensor<2x8x8x10x1xf16>, tensor<2x6x7x10x1xf16>) outs(%1 : tensor<10x1x3x2x1xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f16, %in_1: f16, %out: f32):
      %5 = arith.extf %in : f16 to f32
      %6 = arith.extf %in_1 : f16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<10x1x3x2x1xf32>
    %3 = tensor.empty() : tensor<10x1x3x2x1xf16>
    %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<10x1x3x2x1xf32>) outs(%3 : tensor<10x1x3x2x1xf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<10x1x3x2x1xf16>
    return %4 : tensor<10x1x3x2x1xf16>
  }
}

