// A padded depthwise convolution whose channels lie in front becomes a kernel with pixels in the
// lanes. Rows of 20 pixels are two vectors of 16; the second one begins at pixel 4.

// RUN: %conv_opt %s --pass 'plane-kernel{rows=5 vectors=2 lanes=16 rows_share=5 planes_share=1 direction=fwd batch=1 groups=2 sources=1 results=1 weight_steps=9,9,1,9 image=5,20 outs=5,20 filter=3,3 stride=1,1 dilation=1,1 pad=1,1}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'plane-kernel{rows=2 vectors=2 lanes=16 rows_share=2 planes_share=1 direction=fwd batch=1 groups=2 sources=1 results=1 weight_steps=9,9,1,9 image=5,20 outs=5,20 filter=3,3 stride=1,1 dilation=1,1 pad=1,1}' 2>&1 \
// RUN:   | %filecheck --check-prefix=SHARE

// One workgroup a plane. Seven rows of 22 pixels are copied to the stack; rows outside of the image
// are zeros, and so are the pads of others.
// CHECK-LABEL: func.func @main(
// CHECK:       flow.dispatch.region -> (tensor<2x1x5x20xf32>)
// CHECK:         scf.forall {{.*}} in (2)
// CHECK:           bufferization.alloc_tensor() : tensor<154xf32>
// CHECK:           scf.for
// CHECK:             arith.cmpi ult
// CHECK:             scf.if
// CHECK-NOT:       scf.if
// Nine weights, each in all lanes.
// CHECK-COUNT-9:   tensor.extract
// Each vector of the copy is read once for all rows that meet it: 7 rows, 3 taps, 2 vectors. Each of
// 10 sums has nine products.
// CHECK-COUNT-90:  arith.mulf
// CHECK-NOT:       arith.mulf
// CHECK-COUNT-10:  vector.transfer_write {{.*}} vector<16xf32>, tensor<1x1x5x20xf32>
// CHECK:           conv_compiler.role = "contraction"
// CHECK-NOT:   linalg.generic
// CHECK:       return

// SHARE: tile 1x2x32: shares are whole; use another

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d0, d5, d2 + d6, d3 + d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<1x2x1x5x20xf32>, %arg1: tensor<2x1x1x3x3xf32>) -> tensor<1x2x1x5x20xf32> attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 0, 1, 1] high[0, 0, 0, 1, 1] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f32
    } : tensor<1x2x1x5x20xf32> to tensor<1x2x1x7x22xf32>
    %0 = tensor.empty() : tensor<1x2x1x5x20xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<1x2x1x5x20xf32>) -> tensor<1x2x1x5x20xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %arg1 : tensor<1x2x1x7x22xf32>, tensor<2x1x1x3x3xf32>) outs(%1 : tensor<1x2x1x5x20xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %3 = arith.mulf %in, %in_1 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<1x2x1x5x20xf32>
    return %2 : tensor<1x2x1x5x20xf32>
  }
}
