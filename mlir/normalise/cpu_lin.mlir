// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the convolution to a contraction that cpu_lin.pipeline tiles and vectorises: cpu_lin,
// cpu_grouped, and cpu_loops, which leaves the rest to the compiler.
//
// Before:                          After, one kernel:
//   for g, k, taps, c                for parts, parallel loops, the vector lanes innermost
//     for n, pixels                    for summed loops of a part
//       dW += gradient * image           P[part] += gradient * image
//
// Each step is a pass of ours, named as its file in passes/. It takes the payload and its options:
// a dictionary, or `false` where the kernel does without the step.
module attributes { transform.with_named_sequence } {

func.func private @emulate_f8(!transform.any_op, !transform.any_param)
func.func private @drop_unit_loops(!transform.any_op, !transform.any_param)
func.func private @pad_loops(!transform.any_op, !transform.any_param)
func.func private @order_loops(!transform.any_op, !transform.any_param)
func.func private @split_reduction(!transform.any_op, !transform.any_param)
func.func private @form_dispatch(!transform.any_op, !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %f8: !transform.any_param {transform.readonly},
    %units: !transform.any_param {transform.readonly},
    %whole: !transform.any_param {transform.readonly},
    %order: !transform.any_param {transform.readonly},
    %parts: !transform.any_param {transform.readonly},
    %part_units: !transform.any_param {transform.readonly},
    %kernel: !transform.any_param {transform.readonly}) {
  // Operands of 8-bit floats become bf16.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  // Loops of one iteration go away: the compiler would rebuild the op without our tag.
  func.call @drop_unit_loops(%payload, %units) : (!transform.any_op, !transform.any_param) -> ()
  // Zeros up to whole tiles and equal parts.
  func.call @pad_loops(%payload, %whole) : (!transform.any_op, !transform.any_param) -> ()
  // The loop of the vector lanes comes last, in memory too.
  func.call @order_loops(%payload, %order) : (!transform.any_op, !transform.any_param) -> ()
  // Split-K: parts of summed loops, and an op that sums the parts in rising order.
  func.call @split_reduction(%payload, %parts) : (!transform.any_op, !transform.any_param) -> ()
  // Parts of one iteration leave loops of one.
  func.call @drop_unit_loops(%payload, %part_units)
      : (!transform.any_op, !transform.any_param) -> ()
  // A kernel of its own.
  func.call @form_dispatch(%payload, %kernel) : (!transform.any_op, !transform.any_param) -> ()
  transform.yield
}
}
