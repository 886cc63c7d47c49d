// One part: the region has the result, by one op behind the contraction.

// RUN: %conv_compiler inspect --stage payload -n 8 -k 64 -c 32 --image 8x8 --filter 3x3 --pad 1 \
// RUN:   --elementwise "scale_add(0.5):f32" > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n taps_outside=true columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts{stores_result=true}' \
// RUN:   | %filecheck --check-prefix=WEIGHT
// RUN: %conv_compiler inspect --stage payload --direction fwd -n 8 -k 64 -c 32 --image 8x8 \
// RUN:   --filter 3x3 --pad 1 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts{stores_result=true}' \
// RUN:   | %filecheck --check-prefix=OUTPUT
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts{stores_result=true}' \
// RUN:   | %filecheck --check-prefix=PIXELS
// RUN: %conv_opt %t --pass 'im2col{tile_m=48 tile_n=32 tile_k=16 outside=ho,wo inside=n columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts{stores_result=true}' \
// RUN:   | %filecheck --check-prefix=REST

// d is seen in P's axes, its taps as one.
// WEIGHT: tensor.expand_shape {{.*}} into tensor<1x1x64x9x32xf32>
// WEIGHT: flow.dispatch.region -> (tensor<1x1x64x9x32xf16>)
// WEIGHT: %[[SUMS:.+]] = linalg.generic {{.*}} {conv_compiler.role = "contraction"}
// WEIGHT: linalg.generic {{.*}} ins(%[[SUMS]], %{{.+}} : tensor<1x1x64x9x32xf32>, tensor<1x1x64x9x32xf32>)
// WEIGHT-SAME: conv_compiler.role = "epilogue"
// WEIGHT: arith.truncf
// WEIGHT-NOT: flow.dispatch.region

// The result is [batch and pixels, g, k]: columns are those, the batch outermost.
// OUTPUT: #[[STORED:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
// OUTPUT: flow.dispatch.region -> (tensor<1x512x1x64xf16>)
// OUTPUT: im2col {conv_compiler.operand = "b"}
// OUTPUT-SAME: output_sizes = {{\[}}[1], [8, 8, 8], [3, 3, 1], [32]]
// OUTPUT-SAME: m_pos = [0, 1, 2]
// OUTPUT: linalg.generic {indexing_maps = [{{.*}}, #[[STORED]]]
// OUTPUT-SAME: conv_compiler.role = "epilogue"
// OUTPUT-NOT: flow.dispatch.region

// The same where all summed loops are inside the tile: the batch is outermost in the columns too.
// PIXELS: flow.dispatch.region -> (tensor<1x512x1x64xf16>)
// PIXELS: im2col {conv_compiler.operand = "b"}
// PIXELS-SAME: output_sizes = {{\[}}[1], [32, 3, 3], [8, 8, 8, 1]]
// PIXELS-NOT: flow.dispatch.region

// Of tiles that are larger than the result only its elements are stored. What is rounded stays in P's
// axes until then.
// REST: flow.dispatch.region -> (tensor<1x512x1x64xf16>)
// REST: %[[ROUNDED:.+]] = linalg.generic {{.*}} ins(%{{[0-9]+}} : tensor<1x1x96x512xf32>)
// REST-SAME: conv_compiler.role = "epilogue"
// REST: iree_linalg_ext.map_store %[[ROUNDED]]
// REST: ^bb0(%[[S:.+]]: index, %[[G:.+]]: index, %[[M:.+]]: index, %[[N:.+]]: index):
// REST: %[[END:.+]] = arith.constant 64 : index
// REST: arith.cmpi ult, %[[M]], %[[END]] : index
// REST-NOT: arith.cmpi
// REST: iree_linalg_ext.yield %[[S]], %[[N]], %[[G]], %[[M]], %{{.+}}
// REST-NOT: flow.dispatch.region
