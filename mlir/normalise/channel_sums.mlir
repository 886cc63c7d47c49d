// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the sums of a bias's gradient to kernels of a level each.
//
// Before:                          After, a kernel a level:
//   for channels                     for parts, channels, inner elements
//     for images, pixels               for the middle of a part
//       d_bias += gradient               partial += gradient
//                                    for channels
//                                      for parts, inner elements
//                                        d_bias += partial
//
// Each step is a pass of ours, named as its file in passes/. It takes the payload and its options:
// a dictionary, or `false` where the kernel does without the step.
module attributes { transform.with_named_sequence } {

func.func private @emulate_f8(!transform.any_op, !transform.any_param)
func.func private @channel_sums(
    !transform.any_op, !transform.any_param {conv_compiler.option = "levels"})

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %levels: !transform.any_param {transform.readonly},
    %f8: !transform.any_param {transform.readonly}) {
  // Parts and inner elements of each summed axis, level by level.
  func.call @channel_sums(%payload, %levels) : (!transform.any_op, !transform.any_param) -> ()
  // 8-bit floats are converted in integer arithmetic: of the levels' ops, so behind them.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  transform.yield
}
}
