// The store of a result into a larger tensor goes into the kernel that makes the result, where the
// larger tensor has a view with the axes that the kernel has. Else it stays behind it.

// RUN: %conv_opt %s --pass store-slice | %filecheck

// Some channels of all: rows of pixels lie one pitch apart.
// CHECK-LABEL: @channels
// CHECK:      %[[ROOM:.+]] = flow.tensor.reshape %arg1 : tensor<2x4x9xf32> -> tensor<8x9xf32>
// CHECK:      flow.dispatch.region -> (tensor<8x9xf32>)
// CHECK:        %[[SUM:.+]] = linalg.generic
// CHECK:        tensor.insert_slice %[[SUM]] into %[[ROOM]][0, 0] [8, 8] [1, 1]
// CHECK:      flow.tensor.reshape {{.*}} : tensor<8x9xf32> -> tensor<2x4x9xf32>
// CHECK-NOT:  tensor.insert_slice
func.func @channels(%image: tensor<8x8xf32>, %larger: tensor<2x4x9xf32>) -> tensor<2x4x9xf32> {
  %made = flow.dispatch.region -> (tensor<8x8xf32>) {
    %empty = tensor.empty() : tensor<8x8xf32>
    %sum = linalg.generic {
        indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%image : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
    ^bb0(%x: f32, %old: f32):
      %twice = arith.addf %x, %x : f32
      linalg.yield %twice : f32
    } -> tensor<8x8xf32>
    flow.return %sum : tensor<8x8xf32>
  }
  %pixels = tensor.expand_shape %made [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  %result = util.optimization_barrier %pixels : tensor<2x4x8xf32>
  %stored = tensor.insert_slice %result into %larger[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> into tensor<2x4x9xf32>
  return %stored : tensor<2x4x9xf32>
}

// Rows with a pitch: pixels of different images are no equal steps apart.
// CHECK-LABEL: @rows
// CHECK:      flow.dispatch.region -> (tensor<8x8xf32>)
// CHECK:      tensor.insert_slice {{.*}} into %arg1[0, 0, 0] [2, 4, 8] [1, 1, 1]
func.func @rows(%image: tensor<8x8xf32>, %larger: tensor<2x6x8xf32>) -> tensor<2x6x8xf32> {
  %made = flow.dispatch.region -> (tensor<8x8xf32>) {
    %empty = tensor.empty() : tensor<8x8xf32>
    %sum = linalg.generic {
        indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%image : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
    ^bb0(%x: f32, %old: f32):
      %twice = arith.addf %x, %x : f32
      linalg.yield %twice : f32
    } -> tensor<8x8xf32>
    flow.return %sum : tensor<8x8xf32>
  }
  %pixels = tensor.expand_shape %made [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  %result = util.optimization_barrier %pixels : tensor<2x4x8xf32>
  %stored = tensor.insert_slice %result into %larger[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x8xf32> into tensor<2x6x8xf32>
  return %stored : tensor<2x6x8xf32>
}

// An op of a kernel's result is a kernel with the store.
// CHECK-LABEL: @rounded
// CHECK:      flow.dispatch.region -> (tensor<2x6x8xf16>)
// CHECK:        arith.truncf
// CHECK:        tensor.insert_slice {{.*}} into %arg1[0, 0, 0] [2, 4, 8] [1, 1, 1]
// CHECK:      return
func.func @rounded(%sums: tensor<2x4x8xf32>, %larger: tensor<2x6x8xf16>) -> tensor<2x6x8xf16> {
  %empty = tensor.empty() : tensor<2x4x8xf16>
  %made = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums : tensor<2x4x8xf32>) outs(%empty : tensor<2x4x8xf16>) {
  ^bb0(%x: f32, %old: f16):
    %half = arith.truncf %x : f32 to f16
    linalg.yield %half : f16
  } -> tensor<2x4x8xf16>
  %result = util.optimization_barrier %made : tensor<2x4x8xf16>
  %stored = tensor.insert_slice %result into %larger[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x8xf16> into tensor<2x6x8xf16>
  return %stored : tensor<2x6x8xf16>
}

// A masked store makes the rows of the slice itself: no reshape comes between the two.
// CHECK-LABEL: @masked
// CHECK:      %[[ROOM:.+]] = flow.tensor.reshape %arg1 : tensor<1x9x8xf32> -> tensor<9x8xf32>
// CHECK:      flow.dispatch.region -> (tensor<9x8xf32>)
// CHECK:        %[[ROWS:.+]] = iree_linalg_ext.map_store {{.*}} into
// CHECK:        ^bb0(%[[ROW:.+]]: index, %[[COLUMN:.+]]: index):
// CHECK:          iree_linalg_ext.yield %[[ROW]], %[[COLUMN]], %{{.+}} : index, index, i1
// CHECK:        } : tensor<16x8xf32> into tensor<7x8xf32> -> tensor<7x8xf32>
// CHECK-NOT:    tensor.collapse_shape
// CHECK:        tensor.insert_slice %[[ROWS]] into %[[ROOM]][0, 0] [7, 8] [1, 1]
func.func @masked(%image: tensor<16x8xf32>, %larger: tensor<1x9x8xf32>) -> tensor<1x9x8xf32> {
  %made = flow.dispatch.region -> (tensor<1x7x8xf32>) {
    %empty = tensor.empty() : tensor<1x7x8xf32>
    %stored = iree_linalg_ext.map_store %image into %empty {
    ^bb0(%row: index, %column: index):
      %zero = arith.constant 0 : index
      %end = arith.constant 7 : index
      %inside = arith.cmpi ult, %row, %end : index
      iree_linalg_ext.yield %zero, %row, %column, %inside : index, index, index, i1
    } : tensor<16x8xf32> into tensor<1x7x8xf32> -> tensor<1x7x8xf32>
    flow.return %stored : tensor<1x7x8xf32>
  }
  %result = util.optimization_barrier %made : tensor<1x7x8xf32>
  %slice = tensor.insert_slice %result into %larger[0, 0, 0] [1, 7, 8] [1, 1, 1]
      : tensor<1x7x8xf32> into tensor<1x9x8xf32>
  return %slice : tensor<1x9x8xf32>
}
