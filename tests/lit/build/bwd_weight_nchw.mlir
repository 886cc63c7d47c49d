// Payload for NCHW of the frameworks: the group is the outer part of the channel axis.
// Loops are (g, k, taps, c | n, pixels); operand 0 is the image, padded by an op of its own.

// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCW_KXC_NKW --image 9 --filter 2 --stride 1 --dilation 2 --pad-low 0 --pad-high 2 \
// RUN:   | %filecheck --check-prefix=D1KsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCHW_KYXC_NKHW --image 8x9 --filter 3x2 --stride 2x1 \
// RUN:   --dilation 1x2 --pad-low 1x0 --pad-high 0x2 \
// RUN:   | %filecheck --check-prefix=D2KsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCDHW_KZYXC_NKDHW --image 4x8x9 --filter 2x3x2 --stride 1x2x1 \
// RUN:   --dilation 1x1x2 --pad-low 0x1x0 --pad-high 1x0x2 \
// RUN:   | %filecheck --check-prefix=D3KsC
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCW_KCX_NKW --image 9 --filter 2 --stride 1 --dilation 2 --pad-low 0 --pad-high 2 \
// RUN:   | %filecheck --check-prefix=D1KCs
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCHW_KCYX_NKHW --image 8x9 --filter 3x2 --stride 2x1 \
// RUN:   --dilation 1x2 --pad-low 1x0 --pad-high 0x2 \
// RUN:   | %filecheck --check-prefix=D2KCs
// RUN: %conv_compiler inspect --stage payload -n 2 -g 3 -k 4 -c 5 --dtype bf16 \
// RUN:   --layout NCDHW_KCZYX_NKDHW --image 4x8x9 --filter 2x3x2 --stride 1x2x1 \
// RUN:   --dilation 1x1x2 --pad-low 0x1x0 --pad-high 1x0x2 \
// RUN:   | %filecheck --check-prefix=D3KCs

// D1KsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d3, d5 + d2 * 2)>
// D1KsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d1, d5)>
// D1KsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// D1KsC: func.func @main(%arg0: tensor<2x15x9xbf16>, %arg1: tensor<2x12x9xbf16>) -> tensor<12x2x5xbf16>
// D1KsC: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x9xbf16>
// D1KsC: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x9xbf16>
// D1KsC: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 0, 2]
// D1KsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D1KsC-SAME: outs({{.*}} : tensor<3x4x2x5xf32>)
// D1KsC-SAME: conv_compiler.loops = ["g", "k", "x", "c", "n", "wo"], conv_compiler.role = "contraction"
// D1KsC: tensor.collapse_shape {{.*}} into tensor<12x2x5xbf16>

// D2KsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d0, d4, d6 * 2 + d2, d7 + d3 * 2)>
// D2KsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d0, d1, d6, d7)>
// D2KsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
// D2KsC: func.func @main(%arg0: tensor<2x15x8x9xbf16>, %arg1: tensor<2x12x4x9xbf16>) -> tensor<12x3x2x5xbf16>
// D2KsC: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x8x9xbf16>
// D2KsC: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x4x9xbf16>
// D2KsC: tensor.pad {{.*}} low[0, 0, 0, 1, 0] high[0, 0, 0, 0, 2]
// D2KsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D2KsC-SAME: outs({{.*}} : tensor<3x4x3x2x5xf32>)
// D2KsC-SAME: conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"
// D2KsC: tensor.collapse_shape {{.*}} into tensor<12x3x2x5xbf16>

// D3KsC: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d0, d5, d2 + d7, d8 * 2 + d3, d9 + d4 * 2)>
// D3KsC: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d0, d1, d7, d8, d9)>
// D3KsC: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d0, d1, d2, d3, d4, d5)>
// D3KsC: func.func @main(%arg0: tensor<2x15x4x8x9xbf16>, %arg1: tensor<2x12x4x4x9xbf16>) -> tensor<12x2x3x2x5xbf16>
// D3KsC: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x4x8x9xbf16>
// D3KsC: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x4x4x9xbf16>
// D3KsC: tensor.pad {{.*}} low[0, 0, 0, 0, 1, 0] high[0, 0, 0, 1, 0, 2]
// D3KsC: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D3KsC-SAME: outs({{.*}} : tensor<3x4x2x3x2x5xf32>)
// D3KsC-SAME: conv_compiler.loops = ["g", "k", "z", "y", "x", "c", "n", "do", "ho", "wo"], conv_compiler.role = "contraction"
// D3KsC: tensor.collapse_shape {{.*}} into tensor<12x2x3x2x5xbf16>

// D1KCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d3, d5 + d2 * 2)>
// D1KCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d1, d5)>
// D1KCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d2)>
// D1KCs: func.func @main(%arg0: tensor<2x15x9xbf16>, %arg1: tensor<2x12x9xbf16>) -> tensor<12x5x2xbf16>
// D1KCs: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x9xbf16>
// D1KCs: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x9xbf16>
// D1KCs: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 0, 2]
// D1KCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D1KCs-SAME: outs({{.*}} : tensor<3x4x5x2xf32>)
// D1KCs-SAME: conv_compiler.loops = ["g", "k", "x", "c", "n", "wo"], conv_compiler.role = "contraction"
// D1KCs: tensor.collapse_shape {{.*}} into tensor<12x5x2xbf16>

// D2KCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d0, d4, d6 * 2 + d2, d7 + d3 * 2)>
// D2KCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d5, d0, d1, d6, d7)>
// D2KCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d4, d2, d3)>
// D2KCs: func.func @main(%arg0: tensor<2x15x8x9xbf16>, %arg1: tensor<2x12x4x9xbf16>) -> tensor<12x5x3x2xbf16>
// D2KCs: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x8x9xbf16>
// D2KCs: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x4x9xbf16>
// D2KCs: tensor.pad {{.*}} low[0, 0, 0, 1, 0] high[0, 0, 0, 0, 2]
// D2KCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D2KCs-SAME: outs({{.*}} : tensor<3x4x5x3x2xf32>)
// D2KCs-SAME: conv_compiler.loops = ["g", "k", "y", "x", "c", "n", "ho", "wo"], conv_compiler.role = "contraction"
// D2KCs: tensor.collapse_shape {{.*}} into tensor<12x5x3x2xbf16>

// D3KCs: #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d0, d5, d2 + d7, d8 * 2 + d3, d9 + d4 * 2)>
// D3KCs: #[[GRADIENT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d6, d0, d1, d7, d8, d9)>
// D3KCs: #[[WEIGHT:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d0, d1, d5, d2, d3, d4)>
// D3KCs: func.func @main(%arg0: tensor<2x15x4x8x9xbf16>, %arg1: tensor<2x12x4x4x9xbf16>) -> tensor<12x5x2x3x2xbf16>
// D3KCs: tensor.expand_shape %arg0 {{.*}} into tensor<2x3x5x4x8x9xbf16>
// D3KCs: tensor.expand_shape %arg1 {{.*}} into tensor<2x3x4x4x4x9xbf16>
// D3KCs: tensor.pad {{.*}} low[0, 0, 0, 0, 1, 0] high[0, 0, 0, 1, 0, 2]
// D3KCs: linalg.generic {indexing_maps = [#[[IMAGE]], #[[GRADIENT]], #[[WEIGHT]]]
// D3KCs-SAME: outs({{.*}} : tensor<3x4x5x2x3x2xf32>)
// D3KCs-SAME: conv_compiler.loops = ["g", "k", "z", "y", "x", "c", "n", "do", "ho", "wo"], conv_compiler.role = "contraction"
// D3KCs: tensor.collapse_shape {{.*}} into tensor<12x5x2x3x2xbf16>
