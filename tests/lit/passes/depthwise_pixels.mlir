// A strided depthwise data gradient becomes one kernel of vectors: the weight is read as the program
// has it, and the result is written in its place, phase by phase.

// RUN: %conv_opt %s --pass 'depthwise-pixels{vector=2 columns=3 rows=2 unroll=1 lanes=5 across=2 down=2 images=1 threads=64 product=fma depth=0 direction=bwd_data batch=2 groups=10 sources=1 results=1 weight_steps=6,1,1,1 image=6,6 outs=3,5 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %s --pass 'depthwise-pixels{vector=2 columns=3 rows=2 unroll=1 lanes=5 across=2 down=2 images=1 threads=64 product=fma depth=0 direction=bwd_data batch=2 groups=10 sources=1 results=1 weight_steps=6,1,1,1 image=6,6 outs=3,5 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' \
// RUN:   --pass 'depthwise-pixels{vector=2 columns=3 rows=2 unroll=1 lanes=5 across=2 down=2 images=1 threads=64 product=fma depth=0 direction=bwd_data batch=2 groups=10 sources=1 results=1 weight_steps=6,1,1,1 image=6,6 outs=3,5 filter=3,2 stride=2,1 dilation=1,1 pad=1,0}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TWICE

// A thread has 2 units of rows, of two phases each, and 3 columns. It reads the six taps of its two
// groups, then rows of 4 source pixels. One phase meets one row of the filter and the other two, so
// there are (1 + 2) * 2 units * 3 columns * 2 taps products, none of them by a zero.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[GRADIENT:.+]]: tensor<2x3x5x10x1xf16>, %[[WEIGHT:.+]]: tensor<10x1x3x2x1xf16>)
// CHECK-DAG:   collapse_shape %[[GRADIENT]]
// CHECK-DAG:   collapse_shape %[[WEIGHT]]
// CHECK:       flow.dispatch.region -> (tensor<2x1x6x6x10xf16>)
// CHECK:         scf.forall {{.*}} in (2)
// CHECK:           scf.forall {{.*}} in (64)
// CHECK-COUNT-3:     vector.transfer_read {{.*}} vector<4xf16>
// CHECK-COUNT-4:     vector.transfer_read {{.*}} vector<2xf16>
// CHECK-COUNT-36:    math.fma
// CHECK-NOT:         math.fma
// CHECK:             conv_compiler.role = "contraction"
// CHECK-NOT:     linalg.generic
// CHECK:       return

// TWICE: role contraction: on no op that names its loops

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4, d5, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2 + d6, d3 + d7, d0, d5)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d5, d6, d7, d1)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, d2, d3, d0, d1)>
#map4 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map5 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3, d5, d2, d4, d6)>
module {
  func.func @main(%arg0: tensor<2x3x5x10x1xf16>, %arg1: tensor<10x1x3x2x1xf16>) -> tensor<2x6x6x10x1xf16> attributes {iree.reflection = {conv_compiler.direction = "bwd_data"}} {
    %0 = flow.dispatch.region -> (tensor<10x1x2x2x2x1x1xf16>) {
      %8 = tensor.empty() : tensor<10x1x2x2x2x1x1xf16>
      %cst_3 = arith.constant 0.000000e+00 : f16
      %9 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%8 : tensor<10x1x2x2x2x1x1xf16>) {
      ^bb0(%out: f16):
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
        %extracted = tensor.extract %arg1[%10, %11, %29, %42, %16] : tensor<10x1x3x2x1xf16>
        %43 = arith.andi %28, %41 : i1
        %44 = arith.select %43, %extracted, %cst_3 : f16
        linalg.yield %44 : f16
      } -> tensor<10x1x2x2x2x1x1xf16>
      flow.return %9 : tensor<10x1x2x2x2x1x1xf16>
    }
    %collapsed = tensor.collapse_shape %0 [[0], [1], [2], [3], [4, 5, 6]] : tensor<10x1x2x2x2x1x1xf16> into tensor<10x1x2x2x2xf16>
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1, 0, 0] high[0, 1, 1, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<2x3x5x10x1xf16> to tensor<2x4x7x10x1xf16>
    %1 = tensor.empty() : tensor<2x3x6x10x2xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = linalg.fill ins(%cst_0 : f32) outs(%1 : tensor<2x3x6x10x2xf32>) -> tensor<2x3x6x10x2xf32>
    %3 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %collapsed : tensor<2x4x7x10x1xf16>, tensor<10x1x2x2x2xf16>) outs(%2 : tensor<2x3x6x10x2xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: f16, %in_3: f16, %out: f32):
      %8 = arith.extf %in : f16 to f32
      %9 = arith.extf %in_3 : f16 to f32
      %10 = arith.mulf %8, %9 : f32
      %11 = arith.addf %out, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<2x3x6x10x2xf32>
    %4 = tensor.empty() : tensor<2x3x6x10x2xf16>
    %5 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x3x6x10x2xf32>) outs(%4 : tensor<2x3x6x10x2xf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: f16):
      %8 = arith.truncf %in : f32 to f16
      linalg.yield %8 : f16
    } -> tensor<2x3x6x10x2xf16>
    %expanded = tensor.expand_shape %5 [[0], [1], [2], [3], [4, 5, 6]] output_shape [2, 3, 6, 10, 2, 1, 1] : tensor<2x3x6x10x2xf16> into tensor<2x3x6x10x2x1x1xf16>
    %6 = tensor.empty() : tensor<2x3x2x6x1x10x1xf16>
    %7 = linalg.generic {indexing_maps = [#map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x3x6x10x2x1x1xf16>) outs(%6 : tensor<2x3x2x6x1x10x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x3x2x6x1x10x1xf16>
    %collapsed_1 = tensor.collapse_shape %7 [[0], [1, 2], [3], [4], [5], [6]] : tensor<2x3x2x6x1x10x1xf16> into tensor<2x6x6x1x10x1xf16>
    %collapsed_2 = tensor.collapse_shape %collapsed_1 [[0], [1], [2, 3], [4], [5]] : tensor<2x6x6x1x10x1xf16> into tensor<2x6x6x10x1xf16>
    return %collapsed_2 : tensor<2x6x6x10x1xf16>
  }
}

