// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a forward pass or data gradient to a direct convolution, which cpu_vector.pipeline brings to
// buffers.
//
// Before:                          After:
//   for g, result pixels             packed = the weights, as vectors of lanes
//     for taps, channels             forall images, planes, rows, shares of channels workgroups
//       sum += source * weight         for tiles of adjacent pixels
//   put phases in place                  for taps that are inside, source channels
//   elementwise op                         sums += source * packed                   registers
//                                        elementwise op, whole vectors stored
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @direct_kernel(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "columns"},
    !transform.param<i64> {conv_compiler.option = "vectors"},
    !transform.param<i64> {conv_compiler.option = "lanes"},
    !transform.param<i64> {conv_compiler.option = "rows"},
    !transform.param<i64> {conv_compiler.option = "shares"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %columns: !transform.param<i64> {transform.readonly},
    %vectors: !transform.param<i64> {transform.readonly},
    %lanes: !transform.param<i64> {transform.readonly},
    %rows: !transform.param<i64> {transform.readonly},
    %shares: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // Sums of `columns` units of pixels by `vectors` of `lanes` stay in registers; a workgroup has
  // `rows` and one of `shares`. What lies in the lanes and the convolution's sizes are in the
  // others.
  func.call @direct_kernel(%payload, %columns, %vectors, %lanes, %rows, %shares, %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
