// gemm_k of a GEMM of im2col operands is cut into parts, with a sum of them behind the kernel.

// RUN: %conv_opt %S/im2col.mlir --pass 'im2col{tile_m=32 tile_n=64 tile_k=32}' > %t
// RUN: %filecheck --check-prefix=BEFORE --input-file %t
// RUN: %conv_opt %t --pass 'split-k{split_k=3 tile_k=32}' | %filecheck --check-prefix=THREE
// RUN: %conv_opt %t --pass 'split-k{split_k=1 tile_k=32}' | %filecheck --check-prefix=ONE
// RUN: %conv_opt %S/im2col.mlir --pass 'im2col{tile_m=32 tile_n=64 tile_k=2 outside=ho,wo inside=n}' \
// RUN:   --pass 'split-k{split_k=5 tile_k=2}' | %filecheck --check-prefix=PIXELS
// RUN: not %conv_opt %S/im2col.mlir --pass 'split-k{split_k=3 tile_k=32}' 2>&1 \
// RUN:   | %filecheck --check-prefix=EARLY
// RUN: not %conv_opt %t --pass 'split-k{split_k=3 tile_k=32}' --pass 'split-k{split_k=3 tile_k=32}' 2>&1 \
// RUN:   | %filecheck --check-prefix=EARLY

// BEFORE: im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 8, 0]
// BEFORE-SAME: -> tensor<5x32x32xf16>
// BEFORE: linalg.generic
// BEFORE-SAME: outs({{.*}} : tensor<5x32x64xf32>) attrs = {conv_compiler.role = "contraction"}
// BEFORE: tensor.extract_slice

// Three parts of 8 products, rounded up to a tile of 32 each. They are summed in rising order.
// THREE:      #[[A:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d4, d2)>
// THREE:      #[[B:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d0, d4, d3)>
// THREE:      #[[P:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// THREE:      %[[PARTS:.+]] = flow.dispatch.region -> (tensor<3x5x32x64xf32>)
// THREE:        im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 72, 0]
// THREE-SAME:     -> tensor<5x96x32xf16>
// THREE:        im2col {conv_compiler.operand = "b"} {{.*}} output_pad_high = [0, 72, 16]
// THREE-SAME:     -> tensor<5x96x64xf16>
// THREE:        tensor.expand_shape {{.*}} into tensor<5x3x32x32xf16>
// THREE:        tensor.expand_shape {{.*}} into tensor<5x3x32x64xf16>
// THREE:        linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[P]]]
// THREE-SAME:     conv_compiler.role = "contraction"
// THREE:      linalg.generic
// THREE-SAME:   iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// THREE-SAME:   ins(%[[PARTS]] : tensor<3x5x32x64xf32>) outs({{.*}} : tensor<5x32x64xf32>)
// THREE-SAME:   conv_compiler.role = "reduction"
// THREE:        arith.addf %out, %in
// THREE:      tensor.extract_slice {{.*}} to tensor<5x32x48xf32>
// THREE:      conv_compiler.role = "placement"

// One part has an axis as well, and nothing is added.
// ONE:      flow.dispatch.region -> (tensor<1x5x32x64xf32>)
// ONE:        im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 8, 0]
// ONE:      flow.return
// ONE:      linalg.generic {{.*}} ins({{.*}} : tensor<1x5x32x64xf32>)
// ONE-SAME:   conv_compiler.role = "reduction"

// q is cut where there is one: 3 * 4 pixels in 5 parts of 3; those behind the last are zeros.
// PIXELS:      im2col {conv_compiler.operand = "a"} {{.*}} output_pad_high = [0, 3, 0, 0]
// PIXELS-SAME:   -> tensor<5x15x2x32xf16>
// PIXELS:      tensor.expand_shape {{.*}} into tensor<5x5x3x2x32xf16>

// EARLY: conv-opt: error: split-k: no contraction of two im2col operands; run im2col first
