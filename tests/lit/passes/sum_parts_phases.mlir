// A strided data gradient of one part: the kernel of the contraction puts phases in place.

// RUN: %conv_compiler inspect --stage payload --direction bwd_data -n 2 -k 32 -c 32 --image 7x8 \
// RUN:   --filter 3x3 --pad 1 --stride 2 --target gfx942 > %t
// RUN: %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=1 tile_k=16}' --pass 'sum-parts{stores_result=true stores_phases=true}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %t --pass 'im2col{tile_m=32 tile_n=32 tile_k=16 outside=ho,wo inside=n columns_as_stored=true}' \
// RUN:   --pass 'split-k{split_k=2 tile_k=16}' --pass 'sum-parts{stores_result=true stores_phases=true}' \
// RUN:   2>&1 | %filecheck --check-prefix=PARTS

// Rows are (2 phases, 2 phases, 32 channels), columns (2 images, 4, 4 pixels of each phase).
// CHECK: flow.dispatch.region
// CHECK: flow.dispatch.region -> (tensor<2x7x8x1x32xf16>)
// CHECK: %[[SUMS:.+]] = linalg.generic {{.*}} {conv_compiler.role = "contraction"}
// CHECK: iree_linalg_ext.map_store %{{.+}} into
// CHECK: ^bb0(%{{.+}}: index, %[[G:.+]]: index, %[[M:.+]]: index, %[[N:.+]]: index):
// CHECK: %[[IMAGE:.+]] = arith.divui %[[N]], %c16{{.*}} : index
// CHECK: %[[C:.+]] = arith.remui %[[M]], %c32{{.*}} : index
// CHECK: %[[TWICE:.+]] = arith.muli %{{.+}}, %c2{{.*}} : index
// CHECK: %[[Y:.+]] = arith.addi %[[TWICE]], %{{.+}} : index
// CHECK: %[[X:.+]] = arith.addi
// The image has 7 rows, not 8.
// CHECK: %[[IN:.+]] = arith.cmpi ult, %[[Y]], %c7{{.*}} : index
// CHECK: %[[MASK:.+]] = arith.andi %{{.+}}, %[[IN]] : i1
// CHECK: iree_linalg_ext.yield %[[IMAGE]], %[[Y]], %[[X]], %[[G]], %[[C]], %[[MASK]]
// CHECK: } : tensor<1x1x128x32xf16> into tensor<2x7x8x1x32xf16>
// CHECK-NOT: linalg.generic
// CHECK: return

// PARTS: result stored by the matrix kernel: needs one part
