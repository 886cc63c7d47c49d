// A weight gradient of small groups, channels last, becomes a kernel of waves that copies each pixel
// of the image to LDS once, and one that adds the parts.

// RUN: %conv_compiler inspect --stage payload -n 3 -g 4 -k 8 -c 8 --image 9x12 --filter 3x2 \
// RUN:   --stride 2x1 --pad 1x0 --layout NHWGC_GKYXC_NHWGK --dtype bf16 --target sm_80 > %t
// RUN: %conv_opt %t --pass 'mma-sync-windows{tile_images=1 tile_pixels=2,11 joined_groups=1 merged_groups=2 wave_pieces=1 parts=4 stages=2}' \
// RUN:   | %filecheck
// RUN: not %conv_opt %t --pass 'mma-sync-windows{tile_images=1 tile_pixels=2,11 joined_groups=1 merged_groups=3 wave_pieces=1 parts=4 stages=2}' 2>&1 \
// RUN:   | %filecheck --check-prefix=GROUPS
// RUN: not %conv_opt %t --pass 'mma-sync-windows{tile_images=3 tile_pixels=5,11 joined_groups=1 merged_groups=2 wave_pieces=1 parts=4 stages=2}' 2>&1 \
// RUN:   | %filecheck --check-prefix=FEW

// Each weight has four parts.
// CHECK:       hal.executable.source private @parts_sum
// Two pairs of groups, four parts. The last tile of an image has a row that is missing, and a tile
// has 22 pixels: lines behind the window and behind the output gradient are zeros.
// CHECK:       hal.executable.source private @mma_sync_windows
// CHECK-DAG:     arith.constant 8 : index
// CHECK:         func.func @mma_sync_windows() attributes {conv_compiler.role = "contraction"}
// CHECK:           memref.alloc() alignment = 128 : memref<{{[0-9]+}}xf32, #gpu.address_space<workgroup>>
// CHECK:           vector.store {{.*}} vector<4xf32>
// The first tile.
// CHECK:           cp.async.cg.shared.global
// CHECK:           cp.async.commit_group
// CHECK:           scf.for
// CHECK:             cp.async.wait_group 0;
// CHECK-NOT:         fence.proxy
// CHECK:             gpu.barrier
// The next one, while this one is multiplied.
// CHECK:             scf.if
// CHECK:               cp.async.cg.shared.global
// CHECK:               cp.async.commit_group
// Two steps of sixteen pixels; of each, three pairs of six taps with one piece of channels. The
// output gradient's piece is two blocks.
// CHECK-COUNT-2:     ldmatrix.sync.aligned.m8n8.x{{[24]}}.trans.shared.b16
// CHECK-COUNT-6:     mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-NOT:         mma.sync
// CHECK:             scf.yield
// A lane stores each of its sums: four of each product.
// CHECK-COUNT-12:  vector.store {{.*}} memref<6144xf32>, vector<1xf32>
// CHECK-NOT:       vector.store
// CHECK:           return

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     linalg.generic
// CHECK:         %[[PARTS:.+]] = flow.dispatch @mma_sync_windows::@mma_sync_windows({{.*}} -> tensor<4x4x8x3x2x8xf32>
// CHECK:         flow.dispatch @parts_sum::@parts_sum(%[[PARTS]])

// GROUPS: tile 1x2x11: merged groups divide the groups; use another
// FEW:    tile 3x5x11: each part has a tile; use another
