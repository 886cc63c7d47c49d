// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a convolution of few channels a group, channels in front of its pixels, to a kernel with the
// pixels of a row in the lanes, which cpu_vector.pipeline brings to buffers.
//
// Before:                          After:
//   for g, result pixels             packed = the weights, block by block; not of depthwise ones
//     for channels, taps             forall shares of planes, channels, rows   workgroups
//       sum += source * weight         copy the source rows to the stack
//   elementwise op                     for blocks, tiles of rows and vectors
//                                        for channels, taps
//                                          sums += weight * copy               registers
//                                        elementwise op, whole vectors stored
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @plane_kernel(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "block"},
    !transform.param<i64> {conv_compiler.option = "rows"},
    !transform.param<i64> {conv_compiler.option = "vectors"},
    !transform.param<i64> {conv_compiler.option = "lanes"},
    !transform.param<i64> {conv_compiler.option = "rows_share"},
    !transform.param<i64> {conv_compiler.option = "planes_share"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %block: !transform.param<i64> {transform.readonly},
    %rows: !transform.param<i64> {transform.readonly},
    %vectors: !transform.param<i64> {transform.readonly},
    %lanes: !transform.param<i64> {transform.readonly},
    %rows_share: !transform.param<i64> {transform.readonly},
    %planes_share: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // Sums of `block` channels by `rows` rows by `vectors` of `lanes` pixels stay in registers; a
  // workgroup has `rows_share` rows of `planes_share` planes. The share of channels, the instruction
  // and the convolution's sizes are in the others.
  func.call @plane_kernel(%payload, %block, %rows, %vectors, %lanes, %rows_share, %planes_share,
                          %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.any_param) -> ()
  transform.yield
}
}
