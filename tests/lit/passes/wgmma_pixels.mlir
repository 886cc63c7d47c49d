// A strided data gradient, channels last, becomes one kernel written down to its addresses. The
// weight is read as the program has it; the kernel applies the op and stores each phase in its place.
// With two parts a second kernel adds them.

// RUN: %conv_opt %s --pass 'wgmma-pixels{tile_m=64 tile_n=64 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=1 direction=bwd_data batch=3 groups=1 sources=40 results=24 groups_outside=false weight_steps=5760,1,24,144 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' \
// RUN:   | %filecheck
// RUN: %conv_opt %s --pass 'wgmma-pixels{tile_m=64 tile_n=64 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=2 direction=bwd_data batch=3 groups=1 sources=40 results=24 groups_outside=false weight_steps=5760,1,24,144 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' \
// RUN:   | %filecheck --check-prefix=PARTS
// RUN: not %conv_opt %s --pass 'wgmma-pixels{tile_m=64 tile_n=64 tile_k=32 groups_m=1 groups_n=1 stages=4 split_k=1 direction=bwd_data batch=3 groups=1 sources=40 results=24 groups_outside=false weight_steps=5760,1,24,144 image=8,9 outs=4,8 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TILE

// 108 units of 3 images in 2 tiles, of each of 2 phases. The phases have one and two rows of taps.
// CHECK:       hal.executable.source private @wgmma_pixels
// CHECK-DAG:     arith.constant 2 : index
// CHECK-DAG:     arith.constant 1 : index
// CHECK:         func.func @wgmma_pixels() attributes {conv_compiler.role = "contraction"}
// CHECK:           memref.alloc() alignment = 1024 : memref<16384xf32, #gpu.address_space<workgroup>>
// Two tiles ahead, if the phase has them: sixteen lines at once, of 64 units and of 64 of gemm_k.
// CHECK:           scf.if
// CHECK-COUNT-8:     cp.async.cg.shared.global
// CHECK:           scf.if
// CHECK-COUNT-8:     cp.async.cg.shared.global
// CHECK:           scf.for
// CHECK:             cp.async.wait_group 1;{{.*}}fence.proxy.async.shared::cta;
// CHECK:             gpu.barrier
// The source lies along gemm_k, the weight does not.
// CHECK:             wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, 1;
// CHECK:             scf.if
// CHECK-COUNT-8:       cp.async.cg.shared.global
// CHECK-NOT:         cp.async.cg
// CHECK:             wgmma.wait_group.sync.aligned 1;
// CHECK:           wgmma.wait_group.sync.aligned 0;
// CHECK:           vector.load {{.*}} vector<4xf32>
// CHECK:           arith.cmpf ugt, {{.*}} vector<8xf32>
// CHECK:           arith.truncf {{.*}} vector<8xf32> to vector<8xbf16>
// CHECK:           vector.store {{.*}} memref<5184xbf16>, vector<8xbf16>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[SOURCE:.+]]: tensor<3x4x8x40xbf16>, %[[WEIGHT:.+]]: tensor<40x3x2x24xbf16>)
// CHECK-NOT:     linalg.generic
// CHECK:         flow.dispatch @wgmma_pixels::@wgmma_pixels(%[[SOURCE]], %[[WEIGHT]])

// PARTS:       func.func @parts_sum() attributes {conv_compiler.role = "reduction"}
// PARTS:         arith.cmpf ugt, {{.*}} vector<4xf32>
// PARTS:         vector.store {{.*}} memref<5184xbf16>, vector<4xbf16>
// PARTS:       func.func @wgmma_pixels()
// PARTS:         vector.store {{.*}} memref<10368xf32>, vector<4xf32>

// TILE:  tile 64x64x32: a line of LDS is 64 of gemm_k; use another

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d6, d3 + d7, d0, d5)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d5, d6, d7, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3, d5, d2, d6)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<3x4x8x40xbf16>, %arg1: tensor<40x3x2x24xbf16>) -> tensor<3x8x9x24xbf16> attributes {iree.reflection = {conv_compiler.direction = "bwd_data"}} {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [3, 4, 8, 1, 40] : tensor<3x4x8x40xbf16> into tensor<3x4x8x1x40xbf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [1, 40, 3, 2, 24] : tensor<40x3x2x24xbf16> into tensor<1x40x3x2x24xbf16>
    %0 = flow.dispatch.region -> (tensor<1x40x2x2x2x1x24xbf16>) {
      %8 = tensor.empty() : tensor<1x40x2x2x2x1x24xbf16>
      %cst_6 = arith.constant 0.000000e+00 : bf16
      %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%8 : tensor<1x40x2x2x2x1x24xbf16>) {
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
        %c1_7 = arith.constant 1 : index
        %18 = arith.addi %17, %c1_7 : index
        %c2 = arith.constant 2 : index
        %19 = arith.muli %12, %c2 : index
        %c0 = arith.constant 0 : index
        %20 = arith.addi %19, %c0 : index
        %21 = arith.subi %18, %20 : index
        %c1_8 = arith.constant 1 : index
        %22 = arith.divsi %21, %c1_8 : index
        %c1_9 = arith.constant 1 : index
        %23 = arith.muli %22, %c1_9 : index
        %24 = arith.cmpi eq, %23, %21 : index
        %c0_10 = arith.constant 0 : index
        %25 = arith.cmpi sge, %21, %c0_10 : index
        %c3 = arith.constant 3 : index
        %26 = arith.cmpi slt, %22, %c3 : index
        %27 = arith.andi %24, %25 : i1
        %28 = arith.andi %27, %26 : i1
        %c0_11 = arith.constant 0 : index
        %29 = arith.select %28, %22, %c0_11 : index
        %c1_12 = arith.constant 1 : index
        %30 = arith.muli %15, %c1_12 : index
        %c0_13 = arith.constant 0 : index
        %31 = arith.addi %30, %c0_13 : index
        %c1_14 = arith.constant 1 : index
        %32 = arith.muli %13, %c1_14 : index
        %c-1 = arith.constant -1 : index
        %33 = arith.addi %32, %c-1 : index
        %34 = arith.subi %31, %33 : index
        %c1_15 = arith.constant 1 : index
        %35 = arith.divsi %34, %c1_15 : index
        %c1_16 = arith.constant 1 : index
        %36 = arith.muli %35, %c1_16 : index
        %37 = arith.cmpi eq, %36, %34 : index
        %c0_17 = arith.constant 0 : index
        %38 = arith.cmpi sge, %34, %c0_17 : index
        %c2_18 = arith.constant 2 : index
        %39 = arith.cmpi slt, %35, %c2_18 : index
        %40 = arith.andi %37, %38 : i1
        %41 = arith.andi %40, %39 : i1
        %c0_19 = arith.constant 0 : index
        %42 = arith.select %41, %35, %c0_19 : index
        %extracted = tensor.extract %expanded_0[%10, %11, %29, %42, %16] : tensor<1x40x3x2x24xbf16>
        %43 = arith.andi %28, %41 : i1
        %44 = arith.select %43, %extracted, %cst_6 : bf16
        linalg.yield %44 : bf16
      } -> tensor<1x40x2x2x2x1x24xbf16>
      flow.return %9 : tensor<1x40x2x2x2x1x24xbf16>
    }
    %collapsed = tensor.collapse_shape %0 [[0], [1], [2], [3], [4, 5, 6]] : tensor<1x40x2x2x2x1x24xbf16> into tensor<1x40x2x2x48xbf16>
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %expanded low[0, 0, 1, 0, 0] high[0, 1, 1, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : bf16
    } : tensor<3x4x8x1x40xbf16> to tensor<3x5x10x1x40xbf16>
    %1 = tensor.empty() : tensor<3x4x9x1x48xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %2 = linalg.fill ins(%cst_1 : f32) outs(%1 : tensor<3x4x9x1x48xf32>) -> tensor<3x4x9x1x48xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %collapsed : tensor<3x5x10x1x40xbf16>, tensor<1x40x2x2x48xbf16>) outs(%2 : tensor<3x4x9x1x48xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_6: bf16, %out: f32):
      %8 = arith.extf %in : bf16 to f32
      %9 = arith.extf %in_6 : bf16 to f32
      %10 = arith.mulf %8, %9 : f32
      %11 = arith.addf %out, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<3x4x9x1x48xf32>
    %expanded_2 = tensor.expand_shape %3 [[0], [1], [2], [3], [4, 5]] output_shape [3, 4, 9, 1, 2, 24] : tensor<3x4x9x1x48xf32> into tensor<3x4x9x1x2x24xf32>
    %4 = tensor.empty() : tensor<3x4x2x9x1x1x24xf32>
    %5 = linalg.generic {indexing_maps = [#map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_2 : tensor<3x4x9x1x2x24xf32>) outs(%4 : tensor<3x4x2x9x1x1x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<3x4x2x9x1x1x24xf32>
    %collapsed_3 = tensor.collapse_shape %5 [[0], [1, 2], [3], [4], [5], [6]] : tensor<3x4x2x9x1x1x24xf32> into tensor<3x8x9x1x1x24xf32>
    %collapsed_4 = tensor.collapse_shape %collapsed_3 [[0], [1], [2, 3], [4], [5]] : tensor<3x8x9x1x1x24xf32> into tensor<3x8x9x1x24xf32>
    %6 = tensor.empty() : tensor<3x8x9x1x24xbf16>
    %7 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<3x8x9x1x24xf32>) outs(%6 : tensor<3x8x9x1x24xbf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: bf16):
      %cst_6 = arith.constant 0.000000e+00 : f32
      %8 = arith.cmpf ugt, %in, %cst_6 : f32
      %9 = arith.select %8, %in, %cst_6 : f32
      %10 = arith.truncf %9 : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<3x8x9x1x24xbf16>
    %collapsed_5 = tensor.collapse_shape %7 [[0], [1], [2], [3, 4]] : tensor<3x8x9x1x24xbf16> into tensor<3x8x9x24xbf16>
    return %collapsed_5 : tensor<3x8x9x24xbf16>
  }
}

