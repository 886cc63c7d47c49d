// A strided data gradient of small groups, channels last, becomes one kernel written down to its
// addresses. It copies each source pixel of a tile once, multiplies the windows of all taps from
// LDS, applies the op and stores all phases in their places.

// RUN: %conv_opt %s --pass 'wgmma-windows{tile_images=1 tile_rows=8 tile_columns=8 patch_rows=8 wave_groups=1 merged_groups=2 workgroups=2 direction=bwd_data batch=3 groups=4 sources=8 results=8 weight_steps=384,1,8,48 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'wgmma-windows{tile_images=1 tile_rows=8 tile_columns=12 patch_rows=8 wave_groups=1 merged_groups=2 workgroups=2 direction=bwd_data batch=3 groups=4 sources=8 results=8 weight_steps=384,1,8,48 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TILE
// RUN: not %conv_opt %s --pass 'wgmma-windows{tile_images=1 tile_rows=8 tile_columns=8 patch_rows=8 wave_groups=1 merged_groups=3 workgroups=2 direction=bwd_data batch=3 groups=4 sources=8 results=8 weight_steps=384,1,8,48 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=GROUPS

// Two workgroups share six tiles, of each of two pairs of groups. LDS holds two windows of 81 lines
// in two planes, the weights of six taps and one of zeros, and sums of 64 rows.
// CHECK:       hal.executable.source private @wgmma_windows
// CHECK-DAG:     arith.constant 4 : index
// CHECK:         func.func @wgmma_windows() attributes {conv_compiler.role = "contraction"}
// CHECK:           memref.alloc() alignment = 128 : memref<{{[0-9]+}}xf32, #gpu.address_space<workgroup>>
// Zeros, then the weights and the first window.
// CHECK:           vector.store {{.*}} vector<4xf32>
// CHECK:           cp.async.cg.shared.global
// CHECK:           cp.async.commit_group
// CHECK:           scf.for
// CHECK:             cp.async.wait_group 0;{{.*}}fence.proxy.async.shared::cta;
// CHECK:             gpu.barrier
// The next window, while this one is multiplied.
// CHECK:             scf.if
// CHECK:               cp.async.cg.shared.global
// CHECK:               cp.async.commit_group
// The first phase has two taps, the second four: one instruction and two of each group. Groups and
// phases have columns of their own.
// CHECK:             wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, {{.*}}, 1, 1, 1, 0, 1;{{.*}}m64n8k16{{.*}}{$4,
// CHECK-COUNT-2:     wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$8, {{.*}}, 1, 1, 1, 0, 1;{{.*}}m64n8k16{{.*}}{$12,
// CHECK-NOT:         wgmma.mma_async
// CHECK:             wgmma.wait_group.sync.aligned 0;
// A wave stores its own rows and waits for no other one.
// CHECK-NOT:         gpu.barrier
// CHECK:             bar.warp.sync
// CHECK:             arith.cmpf ugt, {{.*}} vector<8xf32>
// CHECK:             arith.truncf {{.*}} vector<8xf32> to vector<8xbf16>
// CHECK:             vector.store {{.*}} memref<6912xbf16>, vector<8xbf16>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[SOURCE:.+]]: tensor<3x4x8x4x8xbf16>, %[[WEIGHT:.+]]: tensor<4x8x3x2x8xbf16>)
// CHECK-NOT:     linalg.generic
// CHECK:         flow.dispatch @wgmma_windows::@wgmma_windows(%[[SOURCE]], %[[WEIGHT]])

// TILE:   tile 1x8x12: rows and columns are whole patches; use another
// GROUPS: tile 1x8x8: merged groups divide the groups; use another

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d6, d3 + d7, d0, d5)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d5, d6, d7, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3, d5, d2, d6)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<3x4x8x4x8xbf16>, %arg1: tensor<4x8x3x2x8xbf16>) -> tensor<3x8x9x4x8xbf16> attributes {iree.reflection = {conv_compiler.direction = "bwd_data"}} {
    %0 = flow.dispatch.region -> (tensor<4x8x2x2x2x1x8xbf16>) {
      %8 = tensor.empty() : tensor<4x8x2x2x2x1x8xbf16>
      %cst_3 = arith.constant 0.000000e+00 : bf16
      %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%8 : tensor<4x8x2x2x2x1x8xbf16>) {
      ^bb0(%out: bf16):
        %10 = linalg.index 0 : index
        %11 = linalg.index 1 : index
        %12 = linalg.index 2 : index
        %13 = linalg.index 3 : index
        %14 = linalg.index 4 : index
        %15 = linalg.index 5 : index
        %16 = linalg.index 6 : index
        %c1 = arith.constant 1 : index
        %17 = arith.muli %14, %c1 : index
        %c1_4 = arith.constant 1 : index
        %18 = arith.addi %17, %c1_4 : index
        %c2 = arith.constant 2 : index
        %19 = arith.muli %12, %c2 : index
        %c0 = arith.constant 0 : index
        %20 = arith.addi %19, %c0 : index
        %21 = arith.subi %18, %20 : index
        %c1_5 = arith.constant 1 : index
        %22 = arith.divsi %21, %c1_5 : index
        %c1_6 = arith.constant 1 : index
        %23 = arith.muli %22, %c1_6 : index
        %24 = arith.cmpi eq, %23, %21 : index
        %c0_7 = arith.constant 0 : index
        %25 = arith.cmpi sge, %21, %c0_7 : index
        %c3 = arith.constant 3 : index
        %26 = arith.cmpi slt, %22, %c3 : index
        %27 = arith.andi %24, %25 : i1
        %28 = arith.andi %27, %26 : i1
        %c0_8 = arith.constant 0 : index
        %29 = arith.select %28, %22, %c0_8 : index
        %c1_9 = arith.constant 1 : index
        %30 = arith.muli %15, %c1_9 : index
        %c0_10 = arith.constant 0 : index
        %31 = arith.addi %30, %c0_10 : index
        %c1_11 = arith.constant 1 : index
        %32 = arith.muli %13, %c1_11 : index
        %c-1 = arith.constant -1 : index
        %33 = arith.addi %32, %c-1 : index
        %34 = arith.subi %31, %33 : index
        %c1_12 = arith.constant 1 : index
        %35 = arith.divsi %34, %c1_12 : index
        %c1_13 = arith.constant 1 : index
        %36 = arith.muli %35, %c1_13 : index
        %37 = arith.cmpi eq, %36, %34 : index
        %c0_14 = arith.constant 0 : index
        %38 = arith.cmpi sge, %34, %c0_14 : index
        %c2_15 = arith.constant 2 : index
        %39 = arith.cmpi slt, %35, %c2_15 : index
        %40 = arith.andi %37, %38 : i1
        %41 = arith.andi %40, %39 : i1
        %c0_16 = arith.constant 0 : index
        %42 = arith.select %41, %35, %c0_16 : index
        %extracted = tensor.extract %arg1[%10, %11, %29, %42, %16] : tensor<4x8x3x2x8xbf16>
        %43 = arith.andi %28, %41 : i1
        %44 = arith.select %43, %extracted, %cst_3 : bf16
        linalg.yield %44 : bf16
      } -> tensor<4x8x2x2x2x1x8xbf16>
      flow.return %9 : tensor<4x8x2x2x2x1x8xbf16>
    }
    %collapsed = tensor.collapse_shape %0 [[0], [1], [2], [3], [4, 5, 6]] : tensor<4x8x2x2x2x1x8xbf16> into tensor<4x8x2x2x16xbf16>
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %arg0 low[0, 0, 1, 0, 0] high[0, 1, 1, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : bf16
    } : tensor<3x4x8x4x8xbf16> to tensor<3x5x10x4x8xbf16>
    %1 = tensor.empty() : tensor<3x4x9x4x16xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = linalg.fill ins(%cst_0 : f32) outs(%1 : tensor<3x4x9x4x16xf32>) -> tensor<3x4x9x4x16xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %collapsed : tensor<3x5x10x4x8xbf16>, tensor<4x8x2x2x16xbf16>) outs(%2 : tensor<3x4x9x4x16xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_3: bf16, %out: f32):
      %8 = arith.extf %in : bf16 to f32
      %9 = arith.extf %in_3 : bf16 to f32
      %10 = arith.mulf %8, %9 : f32
      %11 = arith.addf %out, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<3x4x9x4x16xf32>
    %expanded = tensor.expand_shape %3 [[0], [1], [2], [3], [4, 5]] output_shape [3, 4, 9, 4, 2, 8] : tensor<3x4x9x4x16xf32> into tensor<3x4x9x4x2x8xf32>
    %4 = tensor.empty() : tensor<3x4x2x9x1x4x8xf32>
    %5 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<3x4x9x4x2x8xf32>) outs(%4 : tensor<3x4x2x9x1x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x4x2x9x1x4x8xf32>
    %collapsed_1 = tensor.collapse_shape %5 [[0], [1, 2], [3], [4], [5], [6]] : tensor<3x4x2x9x1x4x8xf32> into tensor<3x8x9x1x4x8xf32>
    %collapsed_2 = tensor.collapse_shape %collapsed_1 [[0], [1], [2, 3], [4], [5]] : tensor<3x8x9x1x4x8xf32> into tensor<3x8x9x4x8xf32>
    %6 = tensor.empty() : tensor<3x8x9x4x8xbf16>
    %7 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_2 : tensor<3x8x9x4x8xf32>) outs(%6 : tensor<3x8x9x4x8xbf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: bf16):
      %cst_3 = arith.constant 0.000000e+00 : f32
      %8 = arith.cmpf ugt, %in, %cst_3 : f32
      %9 = arith.select %8, %in, %cst_3 : f32
      %10 = arith.truncf %9 : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<3x8x9x4x8xbf16>
    return %7 : tensor<3x8x9x4x8xbf16>
  }
}

