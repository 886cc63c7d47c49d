// The sum of the parts and the placement of the weight become one kernel.

// RUN: %conv_opt %S/im2col.mlir --pass 'im2col{tile_m=32 tile_n=64 tile_k=32}' > %t
// RUN: %conv_opt %t --pass 'split-k{split_k=3 tile_k=32}' > %t.3
// RUN: %filecheck --check-prefix=BEFORE --input-file %t.3
// RUN: %conv_opt %t.3 --pass sum-parts | %filecheck --check-prefix=THREE
// RUN: %conv_opt %t --pass 'split-k{split_k=1 tile_k=32}' --pass sum-parts \
// RUN:   | %filecheck --check-prefix=SLICE
// RUN: %conv_opt %S/im2col.mlir --pass 'im2col{tile_m=16 tile_n=16 tile_k=32}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=32}' --pass sum-parts | %filecheck --check-prefix=VIEW
// RUN: not %conv_opt %t --pass sum-parts 2>&1 | %filecheck --check-prefix=EARLY

// BEFORE: conv_compiler.role = "reduction"
// BEFORE: tensor.extract_slice {{.*}} to tensor<5x32x48xf32>
// BEFORE: tensor.expand_shape {{.*}} into tensor<5x32x2x3x8xf32>
// BEFORE: conv_compiler.role = "placement"

// The sum moves behind the slice and the taps' axes.
// THREE:      %[[P:.+]] = flow.dispatch.region -> (tensor<3x5x32x64xf32>)
// THREE:      flow.dispatch.region -> (tensor<5x32x2x3x8xf32>)
// THREE:        tensor.extract_slice %[[P]]{{.*}} to tensor<3x5x32x48xf32>
// THREE:        tensor.expand_shape {{.*}} into tensor<3x5x32x2x3x8xf32>
// THREE:        linalg.generic
// THREE-SAME:     iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]
// THREE-SAME:     ins({{.*}} : tensor<3x5x32x2x3x8xf32>) outs({{.*}} : tensor<5x32x2x3x8xf32>)
// THREE-SAME:     conv_compiler.role = "reduction"
// THREE:          arith.addf %out, %in
// THREE-NOT:    conv_compiler.role = "placement"

// One part of which a slice is the weight: a kernel that copies it.
// SLICE: flow.dispatch.region -> (tensor<5x32x2x3x8xf32>)
// SLICE:   tensor.extract_slice {{.*}} to tensor<1x5x32x48xf32>
// SLICE:   iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]
// SLICE:   conv_compiler.role = "reduction"

// One part that is the weight: no kernel.
// VIEW:     flow.dispatch.region -> (tensor<1x5x32x48xf32>)
// VIEW-NOT: flow.dispatch.region
// VIEW-NOT: conv_compiler.role = "reduction"
// VIEW:     tensor.expand_shape {{.*}} into tensor<1x5x32x2x3x8xf32>
// VIEW:     tensor.collapse_shape {{.*}} into tensor<5x32x2x3x8xf32>

// EARLY: conv-opt: error: sum-parts: no placement of a sum of parts; run im2col and split-k first
