// The GEMM is the same in every layout; axes differ where tensors are read and the weight is made.

// Channels first and weights GKCYX: input_k_perm is the rank of the axes (n, y, x, c) in the image,
// here n 0, c 2, y 3, x 4; behind x, along which the window steps, stands a unit axis. The sum of one
// part writes the weight's order.
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --image 6x7 --filter 2x3 \
// RUN:   --layout NGCHW_GKCYX_NGKHW --target gfx942 \
// RUN:   | %conv_opt --pass 'im2col{tile_m=16 tile_n=16 tile_k=16}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts' | %filecheck --check-prefix=NGCHW
// NGCHW: im2col {conv_compiler.operand = "b"}
// NGCHW-SAME: batch_pos = [1] m_pos = [0, 3, 4] k_pos = [2, 5] input_k_perm = [0, 2, 3, 1, 4]
// NGCHW: linalg.generic
// NGCHW-SAME: conv_compiler.role = "contraction"
// NGCHW: linalg.generic
// NGCHW-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]
// NGCHW-SAME: outs({{.*}} : tensor<3x4x5x2x3xf32>)
// NGCHW-SAME: conv_compiler.role = "reduction"

// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --image 6x7 --filter 2x3 \
// RUN:   --layout GNHWC_GKYXC_GNHWK --target gfx942 \
// RUN:   | %conv_opt --pass 'im2col{tile_m=16 tile_n=16 tile_k=16}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts' | %filecheck --check-prefix=GNHWC
// GNHWC: im2col {conv_compiler.operand = "b"}
// GNHWC-SAME: batch_pos = [0] m_pos = [1, 2, 3] k_pos = [4] input_k_perm = [0, 1, 2, 3]
// GNHWC: conv_compiler.role = "contraction"
// GNHWC: linalg.generic
// GNHWC-SAME: outs({{.*}} : tensor<3x4x2x3x5xf32>)
// GNHWC-SAME: conv_compiler.role = "reduction"

// The frameworks' form is a view: its G·C axis is two axes of one.
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --image 6x7 --filter 2x3 \
// RUN:   --layout NHWC_KYXC_NHWK --target gfx942 \
// RUN:   | %conv_opt --pass 'im2col{tile_m=16 tile_n=16 tile_k=16}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts' | %filecheck --check-prefix=NHWC
// NHWC: tensor<2x6x7x15xf16> into tensor<2x6x7x3x5xf16>
// NHWC: im2col {conv_compiler.operand = "b"}
// NHWC-SAME: batch_pos = [3] m_pos = [0, 1, 2] k_pos = [4] input_k_perm = [0, 1, 2, 3]
// NHWC: tensor<3x4x2x3x5xf16> into tensor<12x2x3x5xf16>
