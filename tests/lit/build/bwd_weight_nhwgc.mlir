// Payload for NHWGC, the layout of Composable Kernel.
// Loops are (g, k, taps, c | n, pixels); operand 0 is the image, padded by an op of its own.

// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NWGC_GKXC_NWGK --image 9 --filter 2 --stride 1 \
// RUN:   --dilation 2 --pad-low 0 --pad-high 2 \
// RUN:   | %filecheck --check-prefix=D1GKsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NHWGC_GKYXC_NHWGK --image 8x9 --filter 3x2 --stride 2x1 \
// RUN:   --dilation 1x2 --pad-low 1x0 --pad-high 0x2 \
// RUN:   | %filecheck --check-prefix=D2GKsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NDHWGC_GKZYXC_NDHWGK --image 4x8x9 --filter 2x3x2 --stride 1x2x1 \
// RUN:   --dilation 1x1x2 --pad-low 0x1x0 --pad-high 1x0x2 \
// RUN:   | %filecheck --check-prefix=D3GKsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NWGC_GKCX_NWGK --image 9 --filter 2 --stride 1 \
// RUN:   --dilation 2 --pad-low 0 --pad-high 2 \
// RUN:   | %filecheck --check-prefix=D1GKCs
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NHWGC_GKCYX_NHWGK --image 8x9 --filter 3x2 --stride 2x1 \
// RUN:   --dilation 1x2 --pad-low 1x0 --pad-high 0x2 \
// RUN:   | %filecheck --check-prefix=D2GKCs
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NDHWGC_GKCZYX_NDHWGK --image 4x8x9 --filter 2x3x2 --stride 1x2x1 \
// RUN:   --dilation 1x1x2 --pad-low 0x1x0 --pad-high 1x0x2 \
// RUN:   | %filecheck --check-prefix=D3GKCs

// D1GKsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5 + d2 * 2, d0, d3)>
// D1GKsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d0, d1)>
// D1GKsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// D1GKsC: func.func @main(%arg0: tensor<2x9x3x5xbf16>, %arg1: tensor<2x9x3x4xbf16>) -> tensor<3x4x2x5xbf16>
// D1GKsC: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 2, 0, 0]
// D1GKsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D1GKsC-SAME: outs({{.*}} : tensor<3x4x2x5xf32>)
// D1GKsC-SAME: conv_compiler.loops = ["g", "k", "x", "c", "n", "wo"], conv_compiler.role = "contraction"

// D2GKsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6 * 2 + d2, d7 + d3 * 2, d0, d4)>
// D2GKsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6, d7, d0, d1)>
// D2GKsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
// D2GKsC: func.func @main(%arg0: tensor<2x8x9x3x5xbf16>, %arg1: tensor<2x4x9x3x4xbf16>) -> tensor<3x4x3x2x5xbf16>
// D2GKsC: tensor.pad {{.*}} low[0, 1, 0, 0, 0] high[0, 0, 2, 0, 0]
// D2GKsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D2GKsC-SAME: outs({{.*}} : tensor<3x4x3x2x5xf32>)
// D2GKsC-SAME: conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"

// D3GKsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d2 + d7, d8 * 2 + d3, d9 + d4 * 2, d0, d5)>
// D3GKsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d7, d8, d9, d0, d1)>
// D3GKsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d0, d1, d2, d3, d4, d5)>
// D3GKsC: func.func @main(%arg0: tensor<2x4x8x9x3x5xbf16>, %arg1: tensor<2x4x4x9x3x4xbf16>) -> tensor<3x4x2x3x2x5xbf16>
// D3GKsC: tensor.pad {{.*}} low[0, 0, 1, 0, 0, 0] high[0, 1, 0, 2, 0, 0]
// D3GKsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D3GKsC-SAME: outs({{.*}} : tensor<3x4x2x3x2x5xf32>)
// D3GKsC-SAME: conv_compiler.loops = ["g", "k", "z", "y", "x", "c", "n", "do", "ho", "wo"], conv_compiler.role = "contraction"

// D1GKCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5 + d2 * 2, d0, d3)>
// D1GKCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d0, d1)>
// D1GKCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d2)>
// D1GKCs: func.func @main(%arg0: tensor<2x9x3x5xbf16>, %arg1: tensor<2x9x3x4xbf16>) -> tensor<3x4x5x2xbf16>
// D1GKCs: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 2, 0, 0]
// D1GKCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D1GKCs-SAME: outs({{.*}} : tensor<3x4x5x2xf32>)
// D1GKCs-SAME: conv_compiler.loops = ["g", "k", "x", "c", "n", "wo"], conv_compiler.role = "contraction"

// D2GKCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6 * 2 + d2, d7 + d3 * 2, d0, d4)>
// D2GKCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d6, d7, d0, d1)>
// D2GKCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d4, d2, d3)>
// D2GKCs: func.func @main(%arg0: tensor<2x8x9x3x5xbf16>, %arg1: tensor<2x4x9x3x4xbf16>) -> tensor<3x4x5x3x2xbf16>
// D2GKCs: tensor.pad {{.*}} low[0, 1, 0, 0, 0] high[0, 0, 2, 0, 0]
// D2GKCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D2GKCs-SAME: outs({{.*}} : tensor<3x4x5x3x2xf32>)
// D2GKCs-SAME: conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"

// D3GKCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d2 + d7, d8 * 2 + d3, d9 + d4 * 2, d0, d5)>
// D3GKCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d7, d8, d9, d0, d1)>
// D3GKCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d0, d1, d5, d2, d3, d4)>
// D3GKCs: func.func @main(%arg0: tensor<2x4x8x9x3x5xbf16>, %arg1: tensor<2x4x4x9x3x4xbf16>) -> tensor<3x4x5x2x3x2xbf16>
// D3GKCs: tensor.pad {{.*}} low[0, 0, 1, 0, 0, 0] high[0, 1, 0, 2, 0, 0]
// D3GKCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D3GKCs-SAME: outs({{.*}} : tensor<3x4x5x2x3x2xf32>)
// D3GKCs-SAME: conv_compiler.loops = ["g", "k", "z", "y", "x", "c", "n", "do", "ho", "wo"], conv_compiler.role = "contraction"
