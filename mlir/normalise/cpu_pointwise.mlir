// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a 1x1 convolution, channels in front of its pixels, to a kernel with pixels in the lanes,
// which cpu_vector.pipeline brings to buffers.
//
// Before:                          After:
//   for g, result pixels             packed = the weights, block by block
//     for channels                   forall images, groups, shares            workgroups
//       sum += source * weight         for tiles of pixels
//   elementwise op                       copy the source to the stack
//                                        for blocks of result channels, source channels
//                                          sums += packed * source            registers
//                                        elementwise op, whole vectors stored
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @pointwise_kernel(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "block"},
    !transform.param<i64> {conv_compiler.option = "vectors"},
    !transform.param<i64> {conv_compiler.option = "lanes"},
    !transform.param<i64> {conv_compiler.option = "channel_shares"},
    !transform.param<i64> {conv_compiler.option = "pixel_shares"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %block: !transform.param<i64> {transform.readonly},
    %vectors: !transform.param<i64> {transform.readonly},
    %lanes: !transform.param<i64> {transform.readonly},
    %channel_shares: !transform.param<i64> {transform.readonly},
    %pixel_shares: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // Sums of `block` result channels by `vectors` of `lanes` pixels stay in registers; a workgroup
  // has one of the shares. The instruction and the convolution's sizes are in the others.
  func.call @pointwise_kernel(%payload, %block, %vectors, %lanes, %channel_shares, %pixel_shares,
                              %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
