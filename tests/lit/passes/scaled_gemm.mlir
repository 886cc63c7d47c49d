// A forward pass of operands with block scales becomes one kernel of products that take the scales:
// elements and scales are read as the program has them, and nothing converts them.

// RUN: %conv_opt %s --pass 'scaled-gemm{source=C*GN weight=GK*N result=C*GK elements=f8E4M3FN groups=1 rows=20 images=2 summed=64 image=5 outs=2 taps=6 stride=1 dilation=1 pad=1 row_tiles=1 column_tiles=2 waves=1}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'scaled-gemm{source=C*GN weight=GK*N result=CGK* elements=f8E4M3FN groups=1 rows=20 images=2 summed=64 image=5 outs=2 taps=6 stride=1 dilation=1 pad=1 row_tiles=1 column_tiles=2 waves=1}' 2>&1 \
// RUN:   | %filecheck --check-prefix=ORDER

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[X:.+]]: tensor<2x5x1x64xf8E4M3FN>, %[[W:.+]]: tensor<1x20x2x64xf8E4M3FN>, %[[XS:.+]]: tensor<2x5x1x2xi8>, %[[WS:.+]]: tensor<1x20x2x2xi8>)
// CHECK-DAG:   %[[XV:.+]] = tensor.collapse_shape %[[X]]
// CHECK-DAG:   %[[WV:.+]] = tensor.collapse_shape %[[W]]
// CHECK-DAG:   %[[XC:.+]] = tensor.collapse_shape %[[XS]]
// CHECK-DAG:   %[[WC:.+]] = tensor.collapse_shape %[[WS]]
// Two tiles of rows, one of columns; a loop over the taps, one product of 128 deep for 64.
// CHECK:       flow.dispatch.region -> (tensor<12x1x20xf32>)
// CHECK:         scf.forall {{.*}} in (2)
// CHECK:           scf.forall {{.*}} in (64)
// CHECK:             scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>)
// CHECK:               vector.transfer_read %[[WV]]{{.*}} vector<16xf8E4M3FN>
// CHECK:               vector.shuffle {{.*}} : vector<16xf8E4M3FN>, vector<16xf8E4M3FN>
// CHECK:               tensor.extract %[[WC]]
// A block that is not there has the scale 1, and elements that are 0.
// CHECK:               arith.select {{.*}}, %c127_i8
// CHECK:               arith.bitcast {{.*}} : i8 to f8E8M0FNU
// CHECK:               vector.transfer_read %[[XV]]{{.*}} vector<16xf8E4M3FN>
// CHECK:               tensor.extract %[[XC]]
// CHECK-COUNT-2:       amdgpu.scaled_mfma 16x16x128
// CHECK-NOT:           amdgpu.scaled_mfma
// CHECK:               scf.yield
// CHECK:             vector.transfer_write {{.*}} vector<4xf32>
// CHECK:             conv_compiler.role = "contraction"
// CHECK-NOT:   linalg.generic
// CHECK:       return

// ORDER: a result CGK*; give one that is C*GK or GC*K or GK*C

#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d2 + d4, d0, d5)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d2, d0, d1)>
module {
  func.func @main(%arg0: tensor<2x5x1x64xf8E4M3FN>, %arg1: tensor<1x20x2x64xf8E4M3FN>, %arg2: tensor<2x5x1x2xi8>, %arg3: tensor<1x20x2x2xi8>) -> tensor<2x6x1x20xf32> attributes {iree.reflection = {conv_compiler.direction = "fwd", conv_compiler.operands = "input,weight,input_scales,weight_scales", conv_compiler.results = "output"}} {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 5, 1, 2, 32] : tensor<2x5x1x64xf8E4M3FN> into tensor<2x5x1x2x32xf8E4M3FN>
    %0 = flow.dispatch.region -> (tensor<2x5x1x2x32xbf16>) {
      %5 = tensor.empty() : tensor<2x5x1x2x32xbf16>
      %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %arg2 : tensor<2x5x1x2x32xf8E4M3FN>, tensor<2x5x1x2xi8>) outs(%5 : tensor<2x5x1x2x32xbf16>) attrs =  {conv_compiler.role = "decoded"} {
      ^bb0(%in: f8E4M3FN, %in_3: i8, %out: bf16):
        %7 = arith.bitcast %in : f8E4M3FN to i8
        %8 = arith.extui %7 : i8 to i32
        %c127_i32 = arith.constant 127 : i32
        %9 = arith.andi %8, %c127_i32 : i32
        %c1006632960_i32 = arith.constant 1006632960 : i32
        %c20_i32 = arith.constant 20 : i32
        %10 = arith.shli %9, %c20_i32 : i32
        %11 = arith.addi %10, %c1006632960_i32 : i32
        %cst_4 = arith.constant 0.001953125 : f32
        %12 = arith.uitofp %9 : i32 to f32
        %13 = arith.mulf %12, %cst_4 : f32
        %c8_i32 = arith.constant 8 : i32
        %14 = arith.cmpi uge, %9, %c8_i32 : i32
        %15 = arith.bitcast %13 : f32 to i32
        %16 = arith.select %14, %11, %15 : i32
        %c7_i32 = arith.constant 7 : i32
        %17 = arith.shrui %8, %c7_i32 : i32
        %c31_i32 = arith.constant 31 : i32
        %18 = arith.shli %17, %c31_i32 : i32
        %19 = arith.ori %16, %18 : i32
        %c127_i32_5 = arith.constant 127 : i32
        %20 = arith.cmpi eq, %9, %c127_i32_5 : i32
        %c2143289344_i32 = arith.constant 2143289344 : i32
        %21 = arith.select %20, %c2143289344_i32, %19 : i32
        %22 = arith.bitcast %21 : i32 to f32
        %23 = arith.extui %in_3 : i8 to i32
        %c127_i32_6 = arith.constant 127 : i32
        %24 = arith.subi %23, %c127_i32_6 : i32
        %c1_i32 = arith.constant 1 : i32
        %25 = arith.shrsi %24, %c1_i32 : i32
        %26 = arith.subi %24, %25 : i32
        %c127_i32_7 = arith.constant 127 : i32
        %27 = arith.addi %25, %c127_i32_7 : i32
        %c23_i32 = arith.constant 23 : i32
        %28 = arith.shli %27, %c23_i32 : i32
        %29 = arith.bitcast %28 : i32 to f32
        %30 = arith.mulf %22, %29 : f32
        %c127_i32_8 = arith.constant 127 : i32
        %31 = arith.addi %26, %c127_i32_8 : i32
        %c23_i32_9 = arith.constant 23 : i32
        %32 = arith.shli %31, %c23_i32_9 : i32
        %33 = arith.bitcast %32 : i32 to f32
        %34 = arith.mulf %30, %33 : f32
        %c255_i32 = arith.constant 255 : i32
        %35 = arith.cmpi eq, %23, %c255_i32 : i32
        %cst_10 = arith.constant 0x7FC00000 : f32
        %36 = arith.select %35, %cst_10, %34 : f32
        %37 = arith.truncf %36 : f32 to bf16
        linalg.yield %37 : bf16
      } -> tensor<2x5x1x2x32xbf16>
      flow.return %6 : tensor<2x5x1x2x32xbf16>
    }
    %collapsed = tensor.collapse_shape %0 [[0], [1], [2], [3, 4]] : tensor<2x5x1x2x32xbf16> into tensor<2x5x1x64xbf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0], [1], [2], [3, 4]] output_shape [1, 20, 2, 2, 32] : tensor<1x20x2x64xf8E4M3FN> into tensor<1x20x2x2x32xf8E4M3FN>
    %1 = flow.dispatch.region -> (tensor<1x20x2x2x32xbf16>) {
      %5 = tensor.empty() : tensor<1x20x2x2x32xbf16>
      %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_0, %arg3 : tensor<1x20x2x2x32xf8E4M3FN>, tensor<1x20x2x2xi8>) outs(%5 : tensor<1x20x2x2x32xbf16>) attrs =  {conv_compiler.role = "decoded"} {
      ^bb0(%in: f8E4M3FN, %in_3: i8, %out: bf16):
        %7 = arith.bitcast %in : f8E4M3FN to i8
        %8 = arith.extui %7 : i8 to i32
        %c127_i32 = arith.constant 127 : i32
        %9 = arith.andi %8, %c127_i32 : i32
        %c1006632960_i32 = arith.constant 1006632960 : i32
        %c20_i32 = arith.constant 20 : i32
        %10 = arith.shli %9, %c20_i32 : i32
        %11 = arith.addi %10, %c1006632960_i32 : i32
        %cst_4 = arith.constant 0.001953125 : f32
        %12 = arith.uitofp %9 : i32 to f32
        %13 = arith.mulf %12, %cst_4 : f32
        %c8_i32 = arith.constant 8 : i32
        %14 = arith.cmpi uge, %9, %c8_i32 : i32
        %15 = arith.bitcast %13 : f32 to i32
        %16 = arith.select %14, %11, %15 : i32
        %c7_i32 = arith.constant 7 : i32
        %17 = arith.shrui %8, %c7_i32 : i32
        %c31_i32 = arith.constant 31 : i32
        %18 = arith.shli %17, %c31_i32 : i32
        %19 = arith.ori %16, %18 : i32
        %c127_i32_5 = arith.constant 127 : i32
        %20 = arith.cmpi eq, %9, %c127_i32_5 : i32
        %c2143289344_i32 = arith.constant 2143289344 : i32
        %21 = arith.select %20, %c2143289344_i32, %19 : i32
        %22 = arith.bitcast %21 : i32 to f32
        %23 = arith.extui %in_3 : i8 to i32
        %c127_i32_6 = arith.constant 127 : i32
        %24 = arith.subi %23, %c127_i32_6 : i32
        %c1_i32 = arith.constant 1 : i32
        %25 = arith.shrsi %24, %c1_i32 : i32
        %26 = arith.subi %24, %25 : i32
        %c127_i32_7 = arith.constant 127 : i32
        %27 = arith.addi %25, %c127_i32_7 : i32
        %c23_i32 = arith.constant 23 : i32
        %28 = arith.shli %27, %c23_i32 : i32
        %29 = arith.bitcast %28 : i32 to f32
        %30 = arith.mulf %22, %29 : f32
        %c127_i32_8 = arith.constant 127 : i32
        %31 = arith.addi %26, %c127_i32_8 : i32
        %c23_i32_9 = arith.constant 23 : i32
        %32 = arith.shli %31, %c23_i32_9 : i32
        %33 = arith.bitcast %32 : i32 to f32
        %34 = arith.mulf %30, %33 : f32
        %c255_i32 = arith.constant 255 : i32
        %35 = arith.cmpi eq, %23, %c255_i32 : i32
        %cst_10 = arith.constant 0x7FC00000 : f32
        %36 = arith.select %35, %cst_10, %34 : f32
        %37 = arith.truncf %36 : f32 to bf16
        linalg.yield %37 : bf16
      } -> tensor<1x20x2x2x32xbf16>
      flow.return %6 : tensor<1x20x2x2x32xbf16>
    }
    %collapsed_1 = tensor.collapse_shape %1 [[0], [1], [2], [3, 4]] : tensor<1x20x2x2x32xbf16> into tensor<1x20x2x64xbf16>
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %collapsed low[0, 1, 0, 0] high[0, 1, 0, 0] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst : bf16
    } : tensor<2x5x1x64xbf16> to tensor<2x7x1x64xbf16>
    %2 = tensor.empty() : tensor<2x6x1x20xf32>
    %cst_2 = arith.constant 0.000000e+00 : f32
    %3 = linalg.fill ins(%cst_2 : f32) outs(%2 : tensor<2x6x1x20xf32>) -> tensor<2x6x1x20xf32>
    %4 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%padded, %collapsed_1 : tensor<2x7x1x64xbf16>, tensor<1x20x2x64xbf16>) outs(%3 : tensor<2x6x1x20xf32>) attrs =  {conv_compiler.loops = ["g", "k", "x", "c", "wo", "n"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_3: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_3 : bf16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<2x6x1x20xf32>
    return %4 : tensor<2x6x1x20xf32>
  }
}

