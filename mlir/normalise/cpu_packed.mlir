// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the convolution to a kernel of loops and vectors that copies its operands as they are
// multiplied, which cpu_vector.pipeline brings to buffers: cpu_packed, cpu_dot and cpu_amx.
//
// Before:                          After, one kernel:
//   for g, k, taps, c                forall shares of the result                   workgroups
//     for n, pixels                    for cache tiles of a part
//       dW += gradient * image           copy both operands as the lanes want them
//                                        for register tiles of the share
//                                          for summed loops of the cache tile
//                                            sums += products                        registers
//
// Each step is a pass of ours, named as its file in passes/. A declaration says which option of the
// pass a parameter holds; one without a name holds the others as a dictionary, or `false` where the
// kernel does without the step.
module attributes { transform.with_named_sequence } {

func.func private @emulate_f8(!transform.any_op, !transform.any_param)
func.func private @drop_unit_loops(!transform.any_op, !transform.any_param)
func.func private @pad_loops(!transform.any_op, !transform.any_param)
func.func private @pair_products(!transform.any_op, !transform.any_param)
func.func private @order_loops(!transform.any_op, !transform.any_param)
func.func private @split_reduction(!transform.any_op, !transform.any_param)
func.func private @vector_kernel(
    !transform.any_op,
    !transform.any_param {conv_compiler.option = "share"},
    !transform.any_param {conv_compiler.option = "cache"},
    !transform.any_param {conv_compiler.option = "tile"},
    !transform.any_param {conv_compiler.option = "instruction"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %f8: !transform.any_param {transform.readonly},
    %images: !transform.any_param {transform.readonly},
    %pairs: !transform.any_param {transform.readonly},
    %units: !transform.any_param {transform.readonly},
    %whole: !transform.any_param {transform.readonly},
    %order: !transform.any_param {transform.readonly},
    %parts: !transform.any_param {transform.readonly},
    %part_units: !transform.any_param {transform.readonly},
    %share: !transform.any_param {transform.readonly},
    %cache: !transform.any_param {transform.readonly},
    %tile: !transform.any_param {transform.readonly},
    %instruction: !transform.any_param {transform.readonly},
    %kernel: !transform.any_param {transform.readonly}) {
  // Operands of 8-bit floats become bf16.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  // Images of zeros up to whole pairs, or fours; then an element holds the data of an image of each
  // half, or quarter, of the batch. Only instructions that add several products need it.
  func.call @pad_loops(%payload, %images) : (!transform.any_op, !transform.any_param) -> ()
  func.call @pair_products(%payload, %pairs) : (!transform.any_op, !transform.any_param) -> ()
  // Loops of one iteration go away.
  func.call @drop_unit_loops(%payload, %units) : (!transform.any_op, !transform.any_param) -> ()
  // Zeros up to whole tiles and equal parts.
  func.call @pad_loops(%payload, %whole) : (!transform.any_op, !transform.any_param) -> ()
  // The loop of the vector lanes comes last; operands stay as they lie.
  func.call @order_loops(%payload, %order) : (!transform.any_op, !transform.any_param) -> ()
  // Split-K: parts of summed loops, and an op that sums the parts in rising order.
  func.call @split_reduction(%payload, %parts) : (!transform.any_op, !transform.any_param) -> ()
  // Parts of one iteration leave loops of one.
  func.call @drop_unit_loops(%payload, %part_units)
      : (!transform.any_op, !transform.any_param) -> ()
  // The loops and vectors: a workgroup's `share`, the `cache` tile, the register `tile`, and the
  // `instruction` of the products.
  func.call @vector_kernel(%payload, %share, %cache, %tile, %instruction, %kernel)
      : (!transform.any_op, !transform.any_param, !transform.any_param, !transform.any_param,
         !transform.any_param, !transform.any_param) -> ()
  transform.yield
}
}
