// The slice of an argument goes into the kernel that reads it, with the reshapes behind it, where
// these merge what lies together in the larger tensor. Else a kernel of its own copies it.

// RUN: %conv_opt %s --pass 'read-slices{in_place=true}' | %filecheck
// RUN: %conv_opt %s --pass 'read-slices{in_place=false}' | %filecheck --check-prefix=COPY

// Rows with a pitch: pixels and channels of a row lie together.
// CHECK-LABEL: @rows
// CHECK-NOT:  tensor.extract_slice
// CHECK:      flow.dispatch.region
// CHECK-NEXT:   %[[PART:.+]] = tensor.extract_slice %arg0[0, 0, 0] [2, 4, 8] [1, 1, 1]
// CHECK-NEXT:   %[[ROW:.+]] = tensor.collapse_shape %[[PART]] {{\[\[}}0], [1, 2]]
// CHECK:        linalg.generic {{.*}} ins(%[[ROW]] : tensor<2x32xf32>)
// CHECK-NOT:  flow.dispatch.region

// COPY-LABEL: @rows
// COPY:       flow.dispatch.region -> (tensor<2x4x8xf32>)
// COPY-NEXT:    tensor.extract_slice
// COPY:         linalg.generic
// COPY:       %[[ROW:.+]] = tensor.collapse_shape
// COPY:       flow.dispatch.region -> (tensor<2x32xf32>)
// COPY:         linalg.generic {{.*}} ins(%[[ROW]] : tensor<2x32xf32>)
func.func @rows(%image: tensor<2x6x8xf32>) -> tensor<2x32xf32> {
  %part = tensor.extract_slice %image[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x6x8xf32> to tensor<2x4x8xf32>
  %slice = util.optimization_barrier %part : tensor<2x4x8xf32>
  %row = tensor.collapse_shape %slice [[0], [1, 2]] : tensor<2x4x8xf32> into tensor<2x32xf32>
  %made = flow.dispatch.region -> (tensor<2x32xf32>) {
    %empty = tensor.empty() : tensor<2x32xf32>
    %sum = linalg.generic {
        indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<2x32xf32>) outs(%empty : tensor<2x32xf32>) {
    ^bb0(%x: f32, %old: f32):
      %twice = arith.addf %x, %x : f32
      linalg.yield %twice : f32
    } -> tensor<2x32xf32>
    flow.return %sum : tensor<2x32xf32>
  }
  return %made : tensor<2x32xf32>
}

// Some channels of all: pixels and channels lie apart.
// CHECK-LABEL: @channels
// CHECK:      flow.dispatch.region -> (tensor<2x4x8xf32>)
// CHECK-NEXT:   tensor.extract_slice %arg0[0, 0, 0] [2, 4, 8] [1, 1, 1]
// CHECK:      tensor.collapse_shape
// CHECK:      flow.dispatch.region -> (tensor<2x32xf32>)
func.func @channels(%image: tensor<2x4x9xf32>) -> tensor<2x32xf32> {
  %part = tensor.extract_slice %image[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x9xf32> to tensor<2x4x8xf32>
  %slice = util.optimization_barrier %part : tensor<2x4x8xf32>
  %row = tensor.collapse_shape %slice [[0], [1, 2]] : tensor<2x4x8xf32> into tensor<2x32xf32>
  %made = flow.dispatch.region -> (tensor<2x32xf32>) {
    %empty = tensor.empty() : tensor<2x32xf32>
    %sum = linalg.generic {
        indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<2x32xf32>) outs(%empty : tensor<2x32xf32>) {
    ^bb0(%x: f32, %old: f32):
      %twice = arith.addf %x, %x : f32
      linalg.yield %twice : f32
    } -> tensor<2x32xf32>
    flow.return %sum : tensor<2x32xf32>
  }
  return %made : tensor<2x32xf32>
}

// What merges nothing reads channels apart in place.
// CHECK-LABEL: @apart
// CHECK:      flow.dispatch.region -> (tensor<2x4x8xf32>)
// CHECK-NEXT:   tensor.extract_slice %arg0[0, 0, 0] [2, 4, 8] [1, 1, 1]
// CHECK:        arith.addf
// CHECK-NOT:  flow.dispatch.region
func.func @apart(%image: tensor<2x4x9xf32>) -> tensor<2x4x8xf32> {
  %part = tensor.extract_slice %image[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x4x9xf32> to tensor<2x4x8xf32>
  %slice = util.optimization_barrier %part : tensor<2x4x8xf32>
  %made = flow.dispatch.region -> (tensor<2x4x8xf32>) {
    %empty = tensor.empty() : tensor<2x4x8xf32>
    %sum = linalg.generic {
        indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
        iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%slice : tensor<2x4x8xf32>) outs(%empty : tensor<2x4x8xf32>) {
    ^bb0(%x: f32, %old: f32):
      %twice = arith.addf %x, %x : f32
      linalg.yield %twice : f32
    } -> tensor<2x4x8xf32>
    flow.return %sum : tensor<2x4x8xf32>
  }
  return %made : tensor<2x4x8xf32>
}
