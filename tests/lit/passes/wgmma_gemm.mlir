// A weight gradient, channels last, becomes two kernels written down to their addresses: copies of
// pixels of both operands to LDS and products from there, and the sum of the parts. A second run
// finds no contraction that names its loops, and channels that lie apart are refused.

// RUN: %conv_opt %s --pass 'wgmma-gemm{tile_m=64 tile_n=128 tile_k=16 groups_m=1 groups_n=1 stages=4 split_k=2}' \
// RUN:   | %filecheck
// RUN: %conv_opt %s --pass 'wgmma-gemm{tile_m=64 tile_n=64 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=1}' \
// RUN:   | %filecheck --check-prefix=ONE
// RUN: not %conv_opt %s --pass 'wgmma-gemm{tile_m=64 tile_n=96 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=1}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TILE
// RUN: not %conv_opt %s --pass 'wgmma-gemm{tile_m=64 tile_n=64 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=1}' \
// RUN:   --pass 'wgmma-gemm{tile_m=64 tile_n=64 tile_k=64 groups_m=1 groups_n=1 stages=4 split_k=1}' 2>&1 \
// RUN:   | %filecheck --check-prefix=TWICE

// The sum: a thread has four adjacent weights of both parts.
// CHECK:       hal.executable.source private @parts_sum
// CHECK:         func.func @parts_sum() attributes {conv_compiler.role = "reduction"}
// CHECK:           vector.load {{.*}} memref<152064xf32>, vector<4xf32>
// CHECK:           vector.load {{.*}} memref<152064xf32>, vector<4xf32>
// CHECK:           vector.store {{.*}} memref<76032xbf16>

// 2 tiles of 72 rows, 5 of 88 columns of 6 taps, 2 parts of 2 groups.
// CHECK:       hal.executable.source private @wgmma_gemm
// CHECK-DAG:     %[[X:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[Y:.+]] = arith.constant 5 : index
// CHECK-DAG:     %[[Z:.+]] = arith.constant 4 : index
// CHECK:         hal.return %[[X]], %[[Y]], %[[Z]]
// CHECK:         func.func @wgmma_gemm() attributes {conv_compiler.role = "contraction"}
// CHECK:           memref.alloc() alignment = 1024 : memref<8704xf32, #gpu.address_space<workgroup>>
// Two tiles ahead: eight threads a pixel, sixteen pixels at once, three blocks of channels.
// CHECK-COUNT-6:   cp.async.cg.shared.global
// CHECK:           scf.for
// CHECK:             cp.async.wait_group 1;{{.*}}fence.proxy.async.shared::cta;
// CHECK:             gpu.barrier
// CHECK:             wgmma.fence.sync.aligned;
// CHECK:             wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK:             scf.if
// CHECK-COUNT-3:       cp.async.cg.shared.global
// CHECK-NOT:         cp.async.cg
// CHECK:             cp.async.commit_group;
// CHECK:             wgmma.wait_group.sync.aligned 1;
// CHECK:           wgmma.wait_group.sync.aligned 0;
// CHECK:           vector.store {{.*}} memref<8704xf32, #gpu.address_space<workgroup>>, vector<2xf32>
// CHECK:           vector.store {{.*}} memref<152064xf32>, vector<4xf32>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[IMAGE:.+]]: tensor<3x9x11x2x88xbf16>, %[[GRADIENT:.+]]: tensor<3x5x10x2x72xbf16>)
// CHECK-NOT:     linalg.generic
// CHECK:         %[[PARTS:.+]] = flow.dispatch @wgmma_gemm::@wgmma_gemm(%[[GRADIENT]], %[[IMAGE]])
// CHECK-SAME:      -> tensor<2x2x72x3x2x88xf32>
// CHECK:         %[[WEIGHT:.+]] = flow.dispatch @parts_sum::@parts_sum(%[[PARTS]])
// CHECK:         return %[[WEIGHT]]

// A single part is rounded and stored by the kernel itself.
// ONE-NOT:     parts_sum
// ONE:         cvt.rn.bf16x2.f32
// ONE:         vector.store {{.*}} memref<76032xbf16>, vector<8xbf16>
// ONE:         flow.dispatch @wgmma_gemm::@wgmma_gemm
// ONE-SAME:      -> tensor<2x72x3x2x88xbf16>

// TILE:  tile 64x96x64: n is whole blocks of 64 channels a wave group; use another
// TWICE: role contraction: on no op that names its loops

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6 * 2 + d2, d3 + d7, d0, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6, d7, d0, d1)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @main(%arg0: tensor<3x9x11x2x88xbf16>, %arg1: tensor<3x5x10x2x72xbf16>) -> tensor<2x72x3x2x88xbf16> attributes {iree.reflection = {conv_compiler.direction = "bwd_weight"}} {
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %arg0 low[0, 1, 0, 0, 0] high[0, 1, 0, 0, 0] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : bf16
    } : tensor<3x9x11x2x88xbf16> to tensor<3x11x11x2x88xbf16>
    %0 = tensor.empty() : tensor<2x72x3x2x88xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x72x3x2x88xf32>) -> tensor<2x72x3x2x88xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %arg1 : tensor<3x11x11x2x88xbf16>, tensor<3x5x10x2x72xbf16>) outs(%1 : tensor<2x72x3x2x88xf32>) attrs =  {conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"} {
    ^bb0(%in: bf16, %in_1: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.extf %in_1 : bf16 to f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.addf %out, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<2x72x3x2x88xf32>
    %3 = tensor.empty() : tensor<2x72x3x2x88xbf16>
    %4 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x72x3x2x88xf32>) outs(%3 : tensor<2x72x3x2x88xbf16>) attrs =  {conv_compiler.role = "epilogue"} {
    ^bb0(%in: f32, %out: bf16):
      %5 = arith.truncf %in : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<2x72x3x2x88xbf16>
    return %4 : tensor<2x72x3x2x88xbf16>
  }
}

