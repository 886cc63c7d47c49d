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
// passes/: it takes the payload and its options, a dictionary of sizes.
module attributes { transform.with_named_sequence } {

func.func private @depthwise(!transform.any_op, !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %strips: !transform.any_param {transform.readonly}) {
  // `columns` x `rows` output pixels of `vector` groups are a strip; `unroll` rows are written out;
  // `lanes` of a workgroup's `threads` lie along the groups; split-K into `split_k` parts.
  func.call @depthwise(%payload, %strips) : (!transform.any_op, !transform.any_param) -> ()
  transform.yield
}
}
