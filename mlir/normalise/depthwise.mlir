// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a depthwise convolution to a kernel of vectors, which gpu_depthwise.pipeline brings to
// instructions.
//
// Before:                          After:
//   for g, taps                      forall parts, blocks of groups                  workgroups
//     for n, pixels                    forall groups, strips                         threads
//       dW += gradient * image           for strips of a thread
//                                          for rows: window and sums in registers
//                                      sums of the threads are added in LDS
//                                    one kernel, if there are parts: dW = sum over parts
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @depthwise(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "columns"},
    !transform.param<i64> {conv_compiler.option = "rows"},
    !transform.param<i64> {conv_compiler.option = "vector"},
    !transform.param<i64> {conv_compiler.option = "unroll"},
    !transform.param<i64> {conv_compiler.option = "lanes"},
    !transform.param<i64> {conv_compiler.option = "threads"},
    !transform.param<i64> {conv_compiler.option = "split_k"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %columns: !transform.param<i64> {transform.readonly},
    %rows: !transform.param<i64> {transform.readonly},
    %vector: !transform.param<i64> {transform.readonly},
    %unroll: !transform.param<i64> {transform.readonly},
    %lanes: !transform.param<i64> {transform.readonly},
    %threads: !transform.param<i64> {transform.readonly},
    %split_k: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // `columns` x `rows` output pixels of `vector` groups are a strip; `unroll` rows are written out;
  // `lanes` of a workgroup's `threads` lie along the groups; split-K into `split_k` parts, and a
  // kernel that sums them in rising order.
  func.call @depthwise(%payload, %columns, %rows, %vector, %unroll, %lanes, %threads, %split_k,
                       %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
