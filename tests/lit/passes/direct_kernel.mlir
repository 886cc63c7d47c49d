// A padded forward pass becomes a direct convolution: the weights as vectors of result channels, then
// rows of the result by tiles of five and four pixels.

// RUN: %conv_opt %s --pass 'direct-kernel{product=results columns=6 vectors=2 lanes=8 rows=1 shares=1 direction=fwd batch=1 groups=1 sources=8 results=16 weight_steps=1152,72,8,1 image=6,9 outs=6,9 filter=3,3 stride=1,1 dilation=1,1 pad=1,1}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'direct-kernel{product=results columns=6 vectors=2 lanes=8 rows=1 shares=1 direction=fwd batch=1 groups=1 sources=8 results=16 weight_steps=1152,72,8,1 image=6,9 outs=6,9 filter=3,3 stride=1,1 dilation=1,1 pad=1,1}' \
// RUN:   --pass 'direct-kernel{product=results columns=6 vectors=2 lanes=8 rows=1 shares=1 direction=fwd batch=1 groups=1 sources=8 results=16 weight_steps=1152,72,8,1 image=6,9 outs=6,9 filter=3,3 stride=1,1 dilation=1,1 pad=1,1}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TWICE

// Squares of eight weights are transposed in registers, for 9 taps and 2 vectors.
// CHECK-LABEL: func.func @main(
// CHECK:       flow.dispatch.region -> (tensor<1152xf32>)
// CHECK:         scf.forall {{.*}} in (9)
// CHECK-COUNT-24:  vector.shuffle
// CHECK:           conv_compiler.role = "packing"
// A workgroup has a row of the result. Rows of taps that are inside are a loop, and each tap along
// the row has a loop over source channels. The first tile has five pixels of two vectors; its first
// pixel has no tap to the left. No zero is read in the place of a pad.
// CHECK-NOT:     tensor.pad
// CHECK:       flow.dispatch.region -> (tensor<1x1x6x9x16xf32>)
// CHECK:         scf.forall {{.*}} in (6)
// CHECK:           %{{.+}}:10 = scf.for
// CHECK:             %{{.+}}:10 = scf.for
// CHECK-COUNT-16:      vector.broadcast %extracted
// CHECK-NOT:           vector.broadcast
// CHECK:             %{{.+}}:10 = scf.for
// CHECK-COUNT-20:      vector.broadcast %extracted
// CHECK-NOT:           vector.broadcast
// CHECK:             %{{.+}}:10 = scf.for
// CHECK:           %{{.+}}:8 = scf.for
// CHECK:           conv_compiler.role = "contraction"
// CHECK-NOT:     linalg.generic
// CHECK:       return

// TWICE: role contraction: on no op that names its loops

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d5, d3 + d6, d0, d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
module {
  func.func @main(%arg0: tensor<1x6x9x8xf32>, %arg1: tensor<16x3x3x8xf32>) -> tensor<1x6x9x16xf32> attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [1, 6, 9, 1, 8] : tensor<1x6x9x8xf32> into tensor<1x6x9x1x8xf32>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [1, 16, 3, 3, 8] : tensor<16x3x3x8xf32> into tensor<1x16x3x3x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %expanded low[0, 1, 1, 0, 0] high[0, 1, 1, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f32
    } : tensor<1x6x9x1x8xf32> to tensor<1x8x11x1x8xf32>
    %0 = tensor.empty() : tensor<1x6x9x1x16xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<1x6x9x1x16xf32>) -> tensor<1x6x9x1x16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %expanded_0 : tensor<1x8x11x1x8xf32>, tensor<1x16x3x3x8xf32>) outs(%1 : tensor<1x6x9x1x16xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "ho", "wo", "n"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %3 = arith.mulf %in, %in_2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<1x6x9x1x16xf32>
    %collapsed = tensor.collapse_shape %2 [[0], [1], [2], [3, 4]] : tensor<1x6x9x1x16xf32> into tensor<1x6x9x16xf32>
    return %collapsed : tensor<1x6x9x16xf32>
  }
}

