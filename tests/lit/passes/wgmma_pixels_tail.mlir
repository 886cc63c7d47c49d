// A forward pass whose last rows have smaller tiles. One kernel has both kinds of tiles, and its LDS
// is that of the larger demand. The number of a workgroup tells which kind it has.

// RUN: %conv_opt %s --pass 'wgmma-pixels{tile_m=128 tile_n=128 tile_k=64 groups_m=2 groups_n=1 stages=4 split_k=1 tail=1,64,128,1,2,6 direction=fwd batch=3 groups=1 sources=136 results=72 groups_outside=false weight_steps=29376,408,136,1 image=11,9 outs=11,9 filter=3,1 stride=1,1 dilation=1,1 pad=1,0}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'wgmma-pixels{tile_m=128 tile_n=128 tile_k=64 groups_m=2 groups_n=1 stages=4 split_k=1 tail=1,64,128,1,1,6 direction=fwd batch=3 groups=1 sources=136 results=72 groups_outside=false weight_steps=29376,408,136,1 image=11,9 outs=11,9 filter=3,1 stride=1,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=THREADS
// RUN: not %conv_opt %s --pass 'wgmma-pixels{tile_m=128 tile_n=128 tile_k=64 groups_m=2 groups_n=1 stages=4 split_k=2 tail=1,64,128,1,2,6 direction=fwd batch=3 groups=1 sources=136 results=72 groups_outside=false weight_steps=29376,408,136,1 image=11,9 outs=11,9 filter=3,1 stride=1,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=PARTS

// 297 rows: one tile of 128, and three of 64 behind it.
// CHECK:       hal.executable.source private @wgmma_pixels
// CHECK:         arith.constant 4 : index
// CHECK:         func.func @wgmma_pixels()
// Six stages of 64 + 128 rows and columns, where four of 128 + 128 take less.
// CHECK:           memref.alloc() alignment = 1024 : memref<36864xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.alloc
// CHECK:           %[[ONE:.+]] = arith.constant 1 : i32
// CHECK:           %[[HEAD:.+]] = arith.cmpi ult, %{{.+}}, %[[ONE]] : i32
// CHECK:           scf.if %[[HEAD]] {
// CHECK:             scf.for
// CHECK:               wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK:             vector.store {{.*}} memref<21384xbf16>, vector<8xbf16>
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK:             vector.store {{.*}} memref<21384xbf16>, vector<8xbf16>

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     linalg.generic
// CHECK:         flow.dispatch @wgmma_pixels::@wgmma_pixels

// THREADS:  tail 1,64,128,1,1,6: its workgroups have as many threads as others; use another
// PARTS:    tail 1,64,128,1,2,6: its kernel is one of wave groups, of one group, part and phase

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d5, d3 + d6, d0, d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<3x11x9x136xbf16>, %arg1: tensor<72x3x1x136xbf16>) -> tensor<3x11x9x72xbf16> attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [3, 11, 9, 1, 136] : tensor<3x11x9x136xbf16> into tensor<3x11x9x1x136xbf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [1, 72, 3, 1, 136] : tensor<72x3x1x136xbf16> into tensor<1x72x3x1x136xbf16>
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %expanded low[0, 1, 0, 0, 0] high[0, 1, 0, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : bf16
    } : tensor<3x11x9x1x136xbf16> to tensor<3x13x9x1x136xbf16>
    %0 = tensor.empty() : tensor<3x11x9x1x72xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<3x11x9x1x72xf32>) -> tensor<3x11x9x1x72xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %expanded_0 : tensor<3x13x9x1x136xbf16>, tensor<1x72x3x1x136xbf16>) outs(%1 : tensor<3x11x9x1x72xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "ho", "wo", "n"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_2: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_2 : bf16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<3x11x9x1x72xf32>
    %3 = tensor.empty() : tensor<3x11x9x1x72xbf16>
    %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<3x11x9x1x72xf32>) outs(%3 : tensor<3x11x9x1x72xbf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: bf16):
      %5 = arith.truncf %in : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<3x11x9x1x72xbf16>
    %collapsed = tensor.collapse_shape %4 [[0], [1], [2], [3, 4]] : tensor<3x11x9x1x72xbf16> into tensor<3x11x9x72xbf16>
    return %collapsed : tensor<3x11x9x72xbf16>
  }
}

