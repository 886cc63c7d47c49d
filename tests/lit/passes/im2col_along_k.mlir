// A convolution's channels lie side by side along gemm_k: the op that makes its columns is told to
// walk windows and to gather pixels, and its result is put back in the order of the GEMM.

// RUN: %conv_compiler inspect --stage payload --direction fwd -n 16 -g 2 -k 32 -c 32 \
// RUN:   --image 14x14 --filter 3x3 --pad 1 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=64 tile_k=16 outside=ho,wo inside=n}' \
// RUN:   --pass 'split-k{split_k=3 tile_k=16}' --pass 'sum-parts' \
// RUN:   | %filecheck

// 9 taps around 32 channels; columns are the 16 x 14 x 14 pixels of the result.
// CHECK: im2col {conv_compiler.operand = "b"}
// CHECK-SAME: kernel_size = [3, 3, 1]
// CHECK-SAME: output_sizes = {{\[}}[2], [14, 14, 16], [3, 3, 1], [32]]
// CHECK-SAME: batch_pos = [3] m_pos = [1, 2, 0] k_pos = [4]
// CHECK-SAME: output_perm = [0, 2, 3, 1]
// CHECK-SAME: -> tensor<2x9x32x3136xf16>
