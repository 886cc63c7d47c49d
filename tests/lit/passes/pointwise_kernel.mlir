// A 1x1 convolution whose channels lie in front of 40 pixels becomes a kernel with pixels in the
// lanes: the weights block by block, then tiles of two vectors of 16 pixels, and the last vector,
// which begins at pixel 24.

// RUN: %conv_opt %s --pass 'pointwise-kernel{block=4 vectors=2 lanes=16 channel_shares=1 pixel_shares=1 direction=fwd batch=2 groups=1 sources=6 results=8 weight_steps=48,6,1,1 image=5,8 outs=5,8 filter=1,1 stride=1,1 dilation=1,1 pad=0,0}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'pointwise-kernel{block=3 vectors=2 lanes=16 channel_shares=1 pixel_shares=1 direction=fwd batch=2 groups=1 sources=6 results=8 weight_steps=48,6,1,1 image=5,8 outs=5,8 filter=1,1 stride=1,1 dilation=1,1 pad=0,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=BLOCK
// RUN: not %conv_opt %s --pass 'pointwise-kernel{block=4 vectors=1 lanes=16 channel_shares=1 pixel_shares=4 direction=fwd batch=2 groups=1 sources=6 results=8 weight_steps=48,6,1,1 image=5,8 outs=5,8 filter=1,1 stride=1,1 dilation=1,1 pad=0,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=SHARE

// CHECK-LABEL: func.func @main(
// CHECK:       flow.dispatch.region -> (tensor<48xf32>)
// CHECK:         scf.forall {{.*}} in (2)
// CHECK:           conv_compiler.role = "packing"
// One workgroup an image. The source of a tile is copied to the stack, six channels of two vectors;
// then two blocks of four result channels have eight sums.
// CHECK:       flow.dispatch.region -> (tensor<2x8x40xf32>)
// CHECK:         scf.forall {{.*}} in (2)
// CHECK:           bufferization.alloc_tensor() : tensor<192xf32>
// CHECK:           vector.transfer_write {{.*}} tensor<192xf32>
// CHECK:           %{{.+}}:8 = scf.for
// CHECK:             vector.broadcast
// CHECK:             arith.mulf
// The rest of the pixels: one vector.
// CHECK:           arith.constant 24 : index
// CHECK:           %{{.+}}:4 = scf.for
// CHECK:           conv_compiler.role = "contraction"
// CHECK-NOT:   linalg.generic
// CHECK:       return

// BLOCK: tile 3x32: blocks and their shares divide the result channels; use another
// SHARE: tile 4x16: a share has a vector of pixels; use another

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d0, d5, d2 + d6, d3 + d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<2x1x6x5x8xf32>, %arg1: tensor<1x8x6x1x1xf32>) -> tensor<2x1x8x5x8xf32> attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
    %0 = tensor.empty() : tensor<2x1x8x5x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x1x8x5x8xf32>) -> tensor<2x1x8x5x8xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%arg0, %arg1 : tensor<2x1x6x5x8xf32>, tensor<1x8x6x1x1xf32>) outs(%1 : tensor<2x1x8x5x8xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %3 = arith.mulf %in, %in_0 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<2x1x8x5x8xf32>
    return %2 : tensor<2x1x8x5x8xf32>
  }
}
