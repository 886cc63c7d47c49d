// Groups of eight input and four output channels: a thread has all output channels of a group, and
// multiplies its strip by blocks of matrix instructions, by dot products, or by fused multiply-adds.

// RUN: %conv_opt %s --pass 'depthwise-pixels{vector=4 columns=2 rows=1 unroll=1 lanes=32 across=2 down=2 images=1 threads=128 direction=fwd product=blocks depth=4 batch=1 groups=32 sources=8 results=4 weight_steps=64,16,8,1 image=3,5 outs=3,4 filter=1,2 stride=1,1 dilation=1,1 pad=0,0}' \
// RUN:   | %filecheck --check-prefix=BLOCKS
// RUN: %conv_opt %s --pass 'depthwise-pixels{vector=4 columns=2 rows=1 unroll=1 lanes=32 across=2 down=2 images=1 threads=128 direction=fwd product=dot depth=0 batch=1 groups=32 sources=8 results=4 weight_steps=64,16,8,1 image=3,5 outs=3,4 filter=1,2 stride=1,1 dilation=1,1 pad=0,0}' \
// RUN:   | %filecheck --check-prefix=DOT
// RUN: %conv_opt %s --pass 'depthwise-pixels{vector=4 columns=2 rows=1 unroll=1 lanes=32 across=2 down=2 images=1 threads=128 direction=fwd product=fma depth=0 batch=1 groups=32 sources=8 results=4 weight_steps=64,16,8,1 image=3,5 outs=3,4 filter=1,2 stride=1,1 dilation=1,1 pad=0,0}' \
// RUN:   | %filecheck --check-prefix=FMA
// RUN: not %conv_opt %s --pass 'depthwise-pixels{vector=4 columns=2 rows=1 unroll=1 lanes=32 across=2 down=2 images=1 threads=128 direction=fwd product=wmma depth=0 batch=1 groups=32 sources=8 results=4 weight_steps=64,16,8,1 image=3,5 outs=3,4 filter=1,2 stride=1,1 dilation=1,1 pad=0,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=REFUSED

// Four lanes are a block. Each reads the weights of one output channel, two taps of eight input
// channels, and three source pixels. Two columns by two taps by eight input channels, four an
// instruction, are eight instructions.
// BLOCKS:         scf.forall {{.*}} in (128)
// BLOCKS-COUNT-5:   vector.transfer_read {{.*}} vector<8xf16>
// BLOCKS-COUNT-8:   amdgpu.mfma blocks(16) 4x4x4
// BLOCKS-NOT:       amdgpu.mfma
// BLOCKS-COUNT-2:   vector.transfer_write {{.*}} vector<4xf16>
// BLOCKS-NOT:     linalg.generic

// A lane reads the weights of all four output channels. Its products are four channels by four pairs
// by two taps by two columns.
// DOT:             scf.forall {{.*}} in (128)
// DOT-COUNT-11:      vector.transfer_read {{.*}} vector<8xf16>
// DOT-COUNT-64:      amdgpu.dot
// DOT-NOT:           amdgpu.dot

// FMA-COUNT-32: math.fma {{.*}} vector<4xf32>
// FMA-NOT:      math.fma

// REFUSED: product wmma: not in the table; known: fma, dot, blocks, tiles

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d5, d3 + d6, d0, d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<1x3x5x32x8xf16>, %arg1: tensor<32x4x1x2x8xf16>) -> tensor<1x3x4x32x4xf16> attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
    %0 = tensor.empty() : tensor<1x3x4x32x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x3x4x32x4xf32>) -> tensor<1x3x4x32x4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%arg0, %arg1 : tensor<1x3x5x32x8xf16>, tensor<32x4x1x2x8xf16>) outs(%1 : tensor<1x3x4x32x4xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "ho", "wo", "n"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f16, %in_0: f16, %out: f32):
      %5 = arith.extf %in : f16 to f32
      %6 = arith.extf %in_0 : f16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<1x3x4x32x4xf32>
    %3 = tensor.empty() : tensor<1x3x4x32x4xf16>
    %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x3x4x32x4xf32>) outs(%3 : tensor<1x3x4x32x4xf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<1x3x4x32x4xf16>
    return %4 : tensor<1x3x4x32x4xf16>
  }
}

