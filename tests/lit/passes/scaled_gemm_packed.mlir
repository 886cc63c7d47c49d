// A weight gradient of packed elements of 6 bits: kernels in front pack them along the images, and
// the kernel of the products reads blocks of 24 bytes, which are the registers of its instruction.

// RUN: %conv_opt %s --pass 'scaled-gemm{source=N*GC weight=N*GK result=GK*C elements=f6E2M3FN groups=1 rows=8 images=4 summed=64 image=5 outs=4 taps=2 stride=1 dilation=1 pad=0 row_tiles=1 column_tiles=1 waves=1}' \
// RUN:   | %filecheck

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.+]]: tensor<64x5x1x3xi8>, %[[D:.+]]: tensor<64x4x1x6xi8>,
// Four images of a pixel and a channel are three bytes; each element is read by itself.
// CHECK:       flow.dispatch.region -> (tensor<5x1x4x16x3xi8>)
// CHECK-COUNT-8: tensor.extract {{.*}} : tensor<320x3xi8>
// CHECK-NOT:     tensor.extract
// CHECK:         arith.trunci {{.*}} : i32 to i8
// CHECK:       %[[XV:.+]] = tensor.collapse_shape {{.*}} into tensor<960xi8>
// CHECK:       flow.dispatch.region -> (tensor<5x1x4x2xi8>)
// CHECK:       flow.dispatch.region -> (tensor<4x1x8x16x3xi8>)
// CHECK:       %[[DV:.+]] = tensor.collapse_shape {{.*}} into tensor<1536xi8>
// CHECK:       flow.dispatch.region -> (tensor<4x1x8x2xi8>)
// CHECK:       flow.dispatch.region -> (tensor<1x8x8xf32>)
// CHECK:             scf.for {{.*}} -> (vector<4xf32>)
// CHECK:               vector.transfer_read %[[DV]]{{.*}} vector<24xi8>
// CHECK:               vector.bitcast {{.*}} : vector<24xi8> to vector<32xf6E2M3FN>
// CHECK:               vector.transfer_read %[[XV]]{{.*}} vector<24xi8>
// CHECK:               vector.bitcast {{.*}} : vector<24xi8> to vector<32xf6E2M3FN>
// CHECK:               amdgpu.scaled_mfma 16x16x128 {{.*}} vector<32xf6E2M3FN>
// CHECK-NOT:   conv_compiler.role = "decoded"
// CHECK:       return

#map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d3, d4, d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d2 + d5, d0, d3)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<64x5x1x3xi8>, %arg1: tensor<64x4x1x6xi8>, %arg2: tensor<2x5x1x4xi8>, %arg3: tensor<2x4x1x8xi8>) -> tensor<1x8x2x4xf32> attributes {iree.reflection = {conv_compiler.direction = "bwd_weight", conv_compiler.operands = "input,d_output,input_scales,d_output_scales", conv_compiler.packed = "f6E2M3FN,f6E2M3FN,,", conv_compiler.results = "d_weight"}} {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [64, 5, 1, 1, 3] : tensor<64x5x1x3xi8> into tensor<64x5x1x1x3xi8>
    %expanded_0 = tensor.expand_shape %expanded [[0, 1], [2], [3], [4], [5]] output_shape [2, 32, 5, 1, 1, 3] : tensor<64x5x1x1x3xi8> into tensor<2x32x5x1x1x3xi8>
    %expanded_1 = tensor.expand_shape %arg2 [[0], [1], [2], [3, 4]] output_shape [2, 5, 1, 1, 4] : tensor<2x5x1x4xi8> into tensor<2x5x1x1x4xi8>
    %0 = flow.dispatch.region -> (tensor<2x32x5x1x1x4xbf16>) {
      %5 = tensor.empty() : tensor<2x32x5x1x1x4xbf16>
      %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_1 : tensor<2x5x1x1x4xi8>) outs(%5 : tensor<2x32x5x1x1x4xbf16>) attrs =  {conv_compiler.role = "decoded"} {
      ^bb0(%in: i8, %out: bf16):
        %7 = linalg.index 0 : index
        %8 = linalg.index 1 : index
        %9 = linalg.index 2 : index
        %10 = linalg.index 3 : index
        %11 = linalg.index 4 : index
        %12 = linalg.index 5 : index
        %c6 = arith.constant 6 : index
        %13 = arith.muli %12, %c6 : index
        %c8 = arith.constant 8 : index
        %14 = arith.divui %13, %c8 : index
        %extracted = tensor.extract %expanded_0[%7, %8, %9, %10, %11, %14] : tensor<2x32x5x1x1x3xi8>
        %15 = arith.extui %extracted : i8 to i32
        %c2 = arith.constant 2 : index
        %c1 = arith.constant 1 : index
        %16 = arith.addi %14, %c1 : index
        %17 = arith.minui %16, %c2 : index
        %extracted_8 = tensor.extract %expanded_0[%7, %8, %9, %10, %11, %17] : tensor<2x32x5x1x1x3xi8>
        %18 = arith.extui %extracted_8 : i8 to i32
        %c8_i32 = arith.constant 8 : i32
        %19 = arith.shli %18, %c8_i32 : i32
        %20 = arith.ori %15, %19 : i32
        %c8_9 = arith.constant 8 : index
        %21 = arith.remui %13, %c8_9 : index
        %22 = arith.index_cast %21 : index to i32
        %23 = arith.shrui %20, %22 : i32
        %c63_i32 = arith.constant 63 : i32
        %24 = arith.andi %23, %c63_i32 : i32
        %c31_i32 = arith.constant 31 : i32
        %25 = arith.andi %24, %c31_i32 : i32
        %c1056964608_i32 = arith.constant 1056964608 : i32
        %c20_i32 = arith.constant 20 : i32
        %26 = arith.shli %25, %c20_i32 : i32
        %27 = arith.addi %26, %c1056964608_i32 : i32
        %cst_10 = arith.constant 1.250000e-01 : f32
        %28 = arith.uitofp %25 : i32 to f32
        %29 = arith.mulf %28, %cst_10 : f32
        %c8_i32_11 = arith.constant 8 : i32
        %30 = arith.cmpi uge, %25, %c8_i32_11 : i32
        %31 = arith.bitcast %29 : f32 to i32
        %32 = arith.select %30, %27, %31 : i32
        %c5_i32 = arith.constant 5 : i32
        %33 = arith.shrui %24, %c5_i32 : i32
        %c31_i32_12 = arith.constant 31 : i32
        %34 = arith.shli %33, %c31_i32_12 : i32
        %35 = arith.ori %32, %34 : i32
        %36 = arith.bitcast %35 : i32 to f32
        %37 = arith.extui %in : i8 to i32
        %c127_i32 = arith.constant 127 : i32
        %38 = arith.subi %37, %c127_i32 : i32
        %c1_i32 = arith.constant 1 : i32
        %39 = arith.shrsi %38, %c1_i32 : i32
        %40 = arith.subi %38, %39 : i32
        %c127_i32_13 = arith.constant 127 : i32
        %41 = arith.addi %39, %c127_i32_13 : i32
        %c23_i32 = arith.constant 23 : i32
        %42 = arith.shli %41, %c23_i32 : i32
        %43 = arith.bitcast %42 : i32 to f32
        %44 = arith.mulf %36, %43 : f32
        %c127_i32_14 = arith.constant 127 : i32
        %45 = arith.addi %40, %c127_i32_14 : i32
        %c23_i32_15 = arith.constant 23 : i32
        %46 = arith.shli %45, %c23_i32_15 : i32
        %47 = arith.bitcast %46 : i32 to f32
        %48 = arith.mulf %44, %47 : f32
        %c255_i32 = arith.constant 255 : i32
        %49 = arith.cmpi eq, %37, %c255_i32 : i32
        %cst_16 = arith.constant 0x7FC00000 : f32
        %50 = arith.select %49, %cst_16, %48 : f32
        %51 = arith.truncf %50 : f32 to bf16
        linalg.yield %51 : bf16
      } -> tensor<2x32x5x1x1x4xbf16>
      flow.return %6 : tensor<2x32x5x1x1x4xbf16>
    }
    %collapsed = tensor.collapse_shape %0 [[0], [1], [2], [3], [4, 5]] : tensor<2x32x5x1x1x4xbf16> into tensor<2x32x5x1x4xbf16>
    %collapsed_2 = tensor.collapse_shape %collapsed [[0, 1], [2], [3], [4]] : tensor<2x32x5x1x4xbf16> into tensor<64x5x1x4xbf16>
    %expanded_3 = tensor.expand_shape %arg1 [[0], [1], [2], [3, 4]] output_shape [64, 4, 1, 2, 3] : tensor<64x4x1x6xi8> into tensor<64x4x1x2x3xi8>
    %expanded_4 = tensor.expand_shape %expanded_3 [[0, 1], [2], [3], [4], [5]] output_shape [2, 32, 4, 1, 2, 3] : tensor<64x4x1x2x3xi8> into tensor<2x32x4x1x2x3xi8>
    %expanded_5 = tensor.expand_shape %arg3 [[0], [1], [2], [3, 4]] output_shape [2, 4, 1, 2, 4] : tensor<2x4x1x8xi8> into tensor<2x4x1x2x4xi8>
    %1 = flow.dispatch.region -> (tensor<2x32x4x1x2x4xbf16>) {
      %5 = tensor.empty() : tensor<2x32x4x1x2x4xbf16>
      %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x4x1x2x4xi8>) outs(%5 : tensor<2x32x4x1x2x4xbf16>) attrs =  {conv_compiler.role = "decoded"} {
      ^bb0(%in: i8, %out: bf16):
        %7 = linalg.index 0 : index
        %8 = linalg.index 1 : index
        %9 = linalg.index 2 : index
        %10 = linalg.index 3 : index
        %11 = linalg.index 4 : index
        %12 = linalg.index 5 : index
        %c6 = arith.constant 6 : index
        %13 = arith.muli %12, %c6 : index
        %c8 = arith.constant 8 : index
        %14 = arith.divui %13, %c8 : index
        %extracted = tensor.extract %expanded_4[%7, %8, %9, %10, %11, %14] : tensor<2x32x4x1x2x3xi8>
        %15 = arith.extui %extracted : i8 to i32
        %c2 = arith.constant 2 : index
        %c1 = arith.constant 1 : index
        %16 = arith.addi %14, %c1 : index
        %17 = arith.minui %16, %c2 : index
        %extracted_8 = tensor.extract %expanded_4[%7, %8, %9, %10, %11, %17] : tensor<2x32x4x1x2x3xi8>
        %18 = arith.extui %extracted_8 : i8 to i32
        %c8_i32 = arith.constant 8 : i32
        %19 = arith.shli %18, %c8_i32 : i32
        %20 = arith.ori %15, %19 : i32
        %c8_9 = arith.constant 8 : index
        %21 = arith.remui %13, %c8_9 : index
        %22 = arith.index_cast %21 : index to i32
        %23 = arith.shrui %20, %22 : i32
        %c63_i32 = arith.constant 63 : i32
        %24 = arith.andi %23, %c63_i32 : i32
        %c31_i32 = arith.constant 31 : i32
        %25 = arith.andi %24, %c31_i32 : i32
        %c1056964608_i32 = arith.constant 1056964608 : i32
        %c20_i32 = arith.constant 20 : i32
        %26 = arith.shli %25, %c20_i32 : i32
        %27 = arith.addi %26, %c1056964608_i32 : i32
        %cst_10 = arith.constant 1.250000e-01 : f32
        %28 = arith.uitofp %25 : i32 to f32
        %29 = arith.mulf %28, %cst_10 : f32
        %c8_i32_11 = arith.constant 8 : i32
        %30 = arith.cmpi uge, %25, %c8_i32_11 : i32
        %31 = arith.bitcast %29 : f32 to i32
        %32 = arith.select %30, %27, %31 : i32
        %c5_i32 = arith.constant 5 : i32
        %33 = arith.shrui %24, %c5_i32 : i32
        %c31_i32_12 = arith.constant 31 : i32
        %34 = arith.shli %33, %c31_i32_12 : i32
        %35 = arith.ori %32, %34 : i32
        %36 = arith.bitcast %35 : i32 to f32
        %37 = arith.extui %in : i8 to i32
        %c127_i32 = arith.constant 127 : i32
        %38 = arith.subi %37, %c127_i32 : i32
        %c1_i32 = arith.constant 1 : i32
        %39 = arith.shrsi %38, %c1_i32 : i32
        %40 = arith.subi %38, %39 : i32
        %c127_i32_13 = arith.constant 127 : i32
        %41 = arith.addi %39, %c127_i32_13 : i32
        %c23_i32 = arith.constant 23 : i32
        %42 = arith.shli %41, %c23_i32 : i32
        %43 = arith.bitcast %42 : i32 to f32
        %44 = arith.mulf %36, %43 : f32
        %c127_i32_14 = arith.constant 127 : i32
        %45 = arith.addi %40, %c127_i32_14 : i32
        %c23_i32_15 = arith.constant 23 : i32
        %46 = arith.shli %45, %c23_i32_15 : i32
        %47 = arith.bitcast %46 : i32 to f32
        %48 = arith.mulf %44, %47 : f32
        %c255_i32 = arith.constant 255 : i32
        %49 = arith.cmpi eq, %37, %c255_i32 : i32
        %cst_16 = arith.constant 0x7FC00000 : f32
        %50 = arith.select %49, %cst_16, %48 : f32
        %51 = arith.truncf %50 : f32 to bf16
        linalg.yield %51 : bf16
      } -> tensor<2x32x4x1x2x4xbf16>
      flow.return %6 : tensor<2x32x4x1x2x4xbf16>
    }
    %collapsed_6 = tensor.collapse_shape %1 [[0], [1], [2], [3], [4, 5]] : tensor<2x32x4x1x2x4xbf16> into tensor<2x32x4x1x8xbf16>
    %collapsed_7 = tensor.collapse_shape %collapsed_6 [[0, 1], [2], [3], [4]] : tensor<2x32x4x1x8xbf16> into tensor<64x4x1x8xbf16>
    %2 = tensor.empty() : tensor<1x8x2x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x8x2x4xf32>) -> tensor<1x8x2x4xf32>
    %4 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%collapsed_2, %collapsed_7 : tensor<64x5x1x4xbf16>, tensor<64x4x1x8xbf16>) outs(%3 : tensor<1x8x2x4xf32>) attrs =  {conv_compiler.loops = ["g", "k", "x", "c", "n", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_8: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_8 : bf16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<1x8x2x4xf32>
    return %4 : tensor<1x8x2x4xf32>
  }
}

