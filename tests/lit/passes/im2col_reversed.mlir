// A data gradient without a stride: the GEMM's own kernel reverses the taps of the weight, and then
// reads it as it lies.

// RUN: %conv_compiler inspect --stage payload --direction bwd_data -n 2 -k 32 -c 32 --image 7x8 \
// RUN:   --filter 3x2 --pad 1 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n columns_as_stored=true reversed_taps=true}' > %t.turned
// RUN: %filecheck --input-file %t.turned --check-prefix=TURNED
// RUN: %conv_opt %t.turned --pass take-reversed | %filecheck --check-prefix=TAKEN
// RUN: not %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n}' \
// RUN:   --pass take-reversed 2>&1 | %filecheck --check-prefix=NONE

// Six taps. No region in front makes another weight.
// TURNED: #[[LAST_FIRST:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, -d2 + 5, d3)>
// TURNED: func.func @main
// TURNED-COUNT-1: flow.dispatch.region
// TURNED: %[[WEIGHT:.+]] = tensor.collapse_shape %arg1 {{.*}} into tensor<1x32x6x32xf16>
// TURNED: linalg.generic {indexing_maps = [#[[LAST_FIRST]], #{{.+}}]
// TURNED-SAME: ins(%[[WEIGHT]] : tensor<1x32x6x32xf16>)
// TURNED-SAME: conv_compiler.reversed_taps
// TURNED: im2col {conv_compiler.operand = "a"}

// TAKEN-NOT: conv_compiler.reversed_taps
// TAKEN: im2col {conv_compiler.operand = "a"}

// A weight that a kernel in front arranges has none.
// NONE: take-reversed: 0 ops that reverse taps; give a kernel with one
