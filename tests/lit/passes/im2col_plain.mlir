// An operand without windows is read along gemm_k where the batch's loop walks its innermost axis:
// in other directions, whose batch is channels. A weight gradient's pixels are read along channels.

// RUN: %conv_compiler inspect --stage payload --direction fwd -n 16 -k 32 -c 64 --image 7x7 \
// RUN:   --filter 1x1 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=32}' | %filecheck --check-prefix=FWD
// RUN: %conv_compiler inspect --stage payload -n 16 -k 32 -c 64 --image 7x7 --filter 3x3 --pad 1 \
// RUN:   --layout NCHW_KCYX_NKHW --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=32}' | %filecheck --check-prefix=WGRAD

// FWD: im2col {conv_compiler.operand = "a"}
// FWD-SAME: output_perm = [0, 2, 1]
// FWD: im2col {conv_compiler.operand = "b"}
// FWD-SAME: output_perm = [0, 2, 1]

// WGRAD: im2col {conv_compiler.operand = "a"}
// WGRAD-SAME: output_perm = [0, 1, 2]
