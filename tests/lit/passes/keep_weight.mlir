// What kernels make of the weight alone is made in a function of its own, and the module's function
// takes it in the weight's place.

// RUN: %conv_opt %s --pass 'keep-weight{operand=1}' | %filecheck

// The view of what is kept stays with the kernel that reads it; memory for the result comes last.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4xf32>, %arg1: tensor<8xf32>,
// CHECK-SAME:    %arg2: tensor<4xf32> {iree.abi.output = 0 : index}) -> tensor<4xf32>
// CHECK-SAME:    conv_compiler.kept = "1"
// CHECK-SAME:    conv_compiler.operands = "input,kept0"
// CHECK-SAME:    conv_compiler.results = "output"
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[VIEW:.+]] = tensor.expand_shape %arg1
// CHECK:         flow.dispatch.region -> (tensor<4xf32>)
// CHECK:           linalg.matvec ins(%[[VIEW]], %arg0
// CHECK-LABEL: func.func @keep_weight(
// CHECK-SAME:    %arg0: tensor<2x4xf32>) -> tensor<8xf32>
// CHECK-SAME:    conv_compiler.operands = "weight"
// CHECK-SAME:    conv_compiler.results = "kept0"
// CHECK:         %[[KEPT:.+]] = flow.dispatch.region -> (tensor<8xf32>)
// CHECK:           linalg.transpose ins(%arg0
// CHECK-NOT:     linalg.matvec
// CHECK:         return %[[KEPT]] : tensor<8xf32>
func.func @main(%input: tensor<4xf32>, %weight: tensor<2x4xf32>,
                %memory: tensor<4xf32> {iree.abi.output = 0 : index}) -> tensor<4xf32>
    attributes {iree.reflection = {conv_compiler.direction = "fwd"}} {
  %made = flow.dispatch.region -> (tensor<8xf32>) {
    %empty = tensor.empty() : tensor<4x2xf32>
    %turned = linalg.transpose ins(%weight : tensor<2x4xf32>) outs(%empty : tensor<4x2xf32>)
        permutation = [1, 0]
    %flat = tensor.collapse_shape %turned [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
    flow.return %flat : tensor<8xf32>
  }
  %view = tensor.expand_shape %made [[0, 1]] output_shape [2, 4]
      : tensor<8xf32> into tensor<2x4xf32>
  %result = flow.dispatch.region -> (tensor<4xf32>) {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<2xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
    %sums = linalg.matvec ins(%view, %input : tensor<2x4xf32>, tensor<4xf32>)
        outs(%zeros : tensor<2xf32>) -> tensor<2xf32>
    %padded = tensor.pad %sums low[0] high[2] {
    ^bb0(%at: index):
      tensor.yield %zero : f32
    } : tensor<2xf32> to tensor<4xf32>
    flow.return %padded : tensor<4xf32>
  }
  return %result : tensor<4xf32>
}
