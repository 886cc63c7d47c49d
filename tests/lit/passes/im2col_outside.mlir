// Pixels outside the gemm_k tile, taps outside the columns: loops of the GEMM of their own.

// RUN: %conv_compiler inspect --stage payload -n 20 -g 3 -k 32 -c 16 --image 6x7 --filter 2x3 \
// RUN:   --pad 1 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=16 tile_k=16 outside=ho,wo inside=n taps_outside=true}' \
// RUN:   --pass 'split-k{split_k=4 tile_k=16}' --pass 'sum-parts' \
// RUN:   | %filecheck --check-prefix=BATCH
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=n,ho inside=wo}' \
// RUN:   --pass 'split-k{split_k=2 tile_k=16}' --pass 'sum-parts' \
// RUN:   | %filecheck --check-prefix=ROWS
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=16 tile_k=10 outside=ho,wo,no inside=n taps_outside=true}' \
// RUN:   --pass 'split-k{split_k=4 tile_k=10}' --pass 'sum-parts' \
// RUN:   | %filecheck --check-prefix=CHUNKS
// RUN: not %conv_opt %t --pass 'im2col{tile_m=32 tile_n=16 tile_k=16 outside=ho,wo,no inside=n}' 2>&1 \
// RUN:   | %filecheck --check-prefix=UNEVEN
// RUN: not %conv_opt %t --pass 'im2col{tile_m=32 tile_n=16 tile_k=16 outside=ho inside=n}' 2>&1 \
// RUN:   | %filecheck --check-prefix=LOST

// 7 x 7 output pixels are 49, in 4 parts of 13, three of them zeros; 20 images of 32.
// BATCH: #[[A:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d0, d5, d6, d2)>
// BATCH: #[[B:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d0, d5, d6, d3, d4)>
// BATCH: #[[P:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4)>
// BATCH: im2col {conv_compiler.operand = "a"}
// BATCH-SAME: output_sizes = {{\[}}[3], [49], [20], [1, 1, 32]]
// BATCH-SAME: output_pad_high = [0, 3, 12, 0]
// BATCH-SAME: -> tensor<3x52x32x32xf16>
// BATCH: im2col {conv_compiler.operand = "b"}
// BATCH-SAME: kernel_size = [2, 3, 1]
// BATCH-SAME: output_sizes = {{\[}}[3], [7, 7], [20], [1, 2, 3], [16]]
// BATCH-SAME: m_pos = [1, 2, 0] k_pos = [4] input_k_perm = [2, 0, 1, 3]
// BATCH-SAME: -> tensor<3x52x32x6x16xf16>
// BATCH: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[P]]]
// BATCH-SAME: outs({{.*}} : tensor<4x3x32x6x16xf32>)

// Rows and the batch outside: 20 * 7 rows of 7 columns, 16 with zeros. 2 * 3 * 16 = 96 columns.
// ROWS: im2col {conv_compiler.operand = "b"}
// ROWS-SAME: output_sizes = {{\[}}[3], [20, 7], [7], [1, 2, 3, 16]]
// ROWS-SAME: m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
// ROWS-SAME: -> tensor<3x140x16x96xf16>
// ROWS: outs({{.*}} : tensor<2x3x32x96xf32>)

// The batch in two chunks of ten images, beside the pixels: 98 of these in 4 parts of 25.
// CHUNKS: tensor.expand_shape {{.*}} into tensor<2x10x6x7x3x16xf16>
// CHUNKS: im2col {conv_compiler.operand = "a"}
// CHUNKS-SAME: output_sizes = {{\[}}[3], [49, 2], [10], [1, 1, 1, 32]]
// CHUNKS-SAME: output_pad_high = [0, 2, 0, 0]
// CHUNKS-SAME: -> tensor<3x100x10x32xf16>
// CHUNKS: im2col {conv_compiler.operand = "b"}
// CHUNKS-SAME: kernel_size = [2, 3, 1, 1]
// CHUNKS-SAME: output_sizes = {{\[}}[3], [7, 7, 2], [10], [1, 1, 2, 3], [16]]
// CHUNKS-SAME: input_pad_low = [0, 0, 1, 1, 0, 0]
// CHUNKS-SAME: -> tensor<3x100x10x6x16xf16>
// CHUNKS: outs({{.*}} : tensor<4x3x32x6x16xf32>)

// UNEVEN: batch 20 in chunks of 16: not a whole number of them; use another form
// LOST: not those of the problem; name n, ho, wo once each
