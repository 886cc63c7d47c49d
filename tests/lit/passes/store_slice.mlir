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
