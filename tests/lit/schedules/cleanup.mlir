// Slices of slices merge, equal ones are shared, unused ones go.

// RUN: %run_scripts %s | %filecheck

// CHECK-LABEL: func.func @merge
// CHECK:         %[[SLICE:.+]] = tensor.extract_slice %arg0[5] [4] [1] : tensor<64xf32> to tensor<4xf32>
// CHECK-NOT:     tensor.extract_slice
// CHECK:         arith.addf %[[SLICE]], %[[SLICE]]
func.func @merge(%x: tensor<64xf32>) -> tensor<4xf32> {
  %half = tensor.extract_slice %x[4] [32] [1] : tensor<64xf32> to tensor<32xf32>
  %one = tensor.extract_slice %half[1] [4] [1] : tensor<32xf32> to tensor<4xf32>
  %same = tensor.extract_slice %half[1] [4] [1] : tensor<32xf32> to tensor<4xf32>
  %unused = tensor.extract_slice %half[2] [4] [1] : tensor<32xf32> to tensor<4xf32>
  %sum = arith.addf %one, %same : tensor<4xf32>
  return %sum : tensor<4xf32>
}

// A tile of 16 of 40 keeps its odd last piece of 8.
// CHECK-LABEL: func.func @ragged
// CHECK:         scf.for
// CHECK:           affine.min
// CHECK:           tensor.extract_slice {{.*}} : tensor<40xf32> to tensor<?xf32>
func.func @ragged(%x: tensor<40xf32>, %sum: tensor<f32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c40 = arith.constant 40 : index
  %total = scf.for %i = %c0 to %c40 step %c16 iter_args(%partial = %sum) -> tensor<f32> {
    %size = affine.min affine_map<(i) -> (16, 40 - i)>(%i)
    %piece = tensor.extract_slice %x[%i] [%size] [1] : tensor<40xf32> to tensor<?xf32>
    %next = linalg.reduce { arith.addf } ins(%piece : tensor<?xf32>)
        outs(%partial : tensor<f32>) dimensions = [0]
    scf.yield %next : tensor<f32>
  }
  return %total : tensor<f32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %funcs = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %funcs : !transform.any_op {
    ^bb0(%func: !transform.any_op):
      transform.include @cleanup failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
