// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a forward pass or data gradient of groups of few channels to a kernel of vectors, which
// gpu_depthwise.pipeline brings to instructions.
//
// Before:                          After:
//   for g, result pixels             forall images, pixels, groups                   workgroups
//     for taps, channels               forall strips, channels                       threads
//       sum += source * weight           filter = the taps of a thread               registers
//   put phases in place                  for rows of the source
//   elementwise op                         sums of all result rows that it meets     registers
//                                          elementwise op, whole vectors stored
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @depthwise_pixels(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "columns"},
    !transform.param<i64> {conv_compiler.option = "rows"},
    !transform.param<i64> {conv_compiler.option = "vector"},
    !transform.param<i64> {conv_compiler.option = "unroll"},
    !transform.param<i64> {conv_compiler.option = "threads"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %columns: !transform.param<i64> {transform.readonly},
    %rows: !transform.param<i64> {transform.readonly},
    %vector: !transform.param<i64> {transform.readonly},
    %unroll: !transform.param<i64> {transform.readonly},
    %threads: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // `columns` x `rows` units of `vector` result channels are a strip; `unroll` rows are
  // written out. How a workgroup's `threads` lie and the convolution's sizes are in the others.
  func.call @depthwise_pixels(%payload, %columns, %rows, %vector, %unroll, %threads, %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
