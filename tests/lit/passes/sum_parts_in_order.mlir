// Partial sums in the order of the result: the kernel that adds them reads and writes whole lines.

// RUN: %conv_compiler inspect --stage payload --direction fwd -n 2 -k 24 -c 40 --image 5x6 \
// RUN:   --filter 3x3 --pad 1 --target gfx942 --elementwise relu > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=16 tile_n=32 tile_k=32 columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=3 tile_k=32}' > %t.parts
// RUN: %filecheck --check-prefix=BEFORE --input-file %t.parts
// RUN: %conv_opt %t.parts --pass 'sum-parts{parts_as_stored=true}' | %filecheck --check-prefix=AFTER
// RUN: %conv_compiler inspect --stage payload --direction fwd -n 2 -k 24 -c 40 --image 5x6 \
// RUN:   --filter 3x3 --pad 1 --target gfx942 --layout NCHW_KCYX_NKHW > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=16 tile_n=32 tile_k=32 merged_groups=1 taps_in_rows=true}' \
// RUN:   --pass 'split-k{split_k=3 tile_k=32}' > %t.rows
// RUN: not %conv_opt %t.rows --pass 'sum-parts{parts_as_stored=true}' 2>&1 \
// RUN:   | %filecheck --check-prefix=ROWS

// P has rows, then columns.
// BEFORE: flow.dispatch.region -> (tensor<3x1x32x64xf32>)

// The matrix kernel has an op that turns its sums, in f32: columns are the 60 pixels.
// AFTER: #[[STORED:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
// AFTER: #[[PARTS:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d5, d0, d1, d2, d3, d4)>
// AFTER: %[[P:.+]] = flow.dispatch.region -> (tensor<3x64x1x32xf32>)
// AFTER:   linalg.generic {indexing_maps = [{{.*}}, #[[STORED]]]
// AFTER-SAME: conv_compiler.role = "epilogue"
// The sum transposes nothing, and the epilogue is behind it.
// AFTER: flow.dispatch.region -> (tensor<2x5x6x1x24xf16>)
// AFTER:   tensor.extract_slice %[[P]]{{.*}} to tensor<3x60x1x24xf32>
// AFTER:   tensor.expand_shape {{.*}} into tensor<3x2x5x6x1x24xf32>
// AFTER:   linalg.generic {indexing_maps = [#[[PARTS]], {{.*}}ins({{.*}} : tensor<3x2x5x6x1x24xf32>)
// AFTER-SAME: conv_compiler.role = "reduction"
// AFTER:   arith.addf
// AFTER:   arith.truncf

// ROWS: result stored by the matrix kernel: needs one part, and neither taps in rows nor merged
