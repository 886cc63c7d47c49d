// Where the weight's elements are computed places of P, the sum extracts them, part by part.

// RUN: %conv_compiler inspect --stage payload -n 2 -g 4 -k 3 -c 2 --image 5x6 --filter 2x3 \
// RUN:   --layout NHWC_KYXC_NHWK --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=16 tile_n=16 tile_k=16 merged_groups=2}' > %t.gemm
// RUN: %filecheck --check-prefix=PLACES --input-file %t.gemm
// RUN: %conv_opt %t.gemm --pass 'split-k{split_k=3 tile_k=16}' --pass sum-parts \
// RUN:   | %filecheck --check-prefix=SUM
// RUN: %conv_compiler inspect --stage payload -n 2 -k 3 -c 4 --image 5x6 --filter 2x3 \
// RUN:   --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=16 tile_n=16 tile_k=16 taps_in_rows=true}' \
// RUN:   --pass 'split-k{split_k=2 tile_k=16}' --pass sum-parts | %filecheck --check-prefix=ROWS
// RUN: %conv_compiler inspect --stage payload -n 2 -k 1 -c 1 --image 3x2 --filter 1x1 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=16 tile_n=16 tile_k=16}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass sum-parts | %filecheck --check-prefix=SINGLE

// Two groups are one: 6 rows of 16, 2 * 3 * 4 columns of 32. Blocks of the diagonal are the weight.
// PLACES: %[[P:.+]] = flow.dispatch.region -> (tensor<2x16x32xf32>)
// PLACES: flow.return
// PLACES: linalg.generic
// PLACES-SAME: conv_compiler.role = "placement"
// PLACES: arith.remui
// PLACES: tensor.extract %[[P]]

// SUM: %[[P:.+]] = flow.dispatch.region -> (tensor<3x2x16x32xf32>)
// SUM: flow.dispatch.region
// SUM-NOT: tensor.extract_slice
// SUM: linalg.generic
// SUM-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]
// SUM-SAME: conv_compiler.role = "reduction"
// SUM: %[[S:.+]] = linalg.index 5
// SUM: arith.remui
// SUM: %[[PART:.+]] = tensor.extract %[[P]][%[[S]],
// SUM: arith.addf %out, %[[PART]]

// Taps in rows run backward.
// ROWS: conv_compiler.role = "reduction"
// ROWS: arith.subi
// ROWS: tensor.extract

// One element of one part is extracted too, for a slice of it would be too large in rank.
// SINGLE-NOT: tensor.extract_slice
// SINGLE: conv_compiler.role = "reduction"
// SINGLE: tensor.extract
