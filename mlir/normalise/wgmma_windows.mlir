// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a forward pass or data gradient of small groups, channels last, to one kernel of wave groups
// (sm_90a) that copies each source pixel once.
//
// Before:                          After:
//   for g, result pixels, channels   forall tile of pixels, merged groups       workgroups
//     for taps, channels               window and weights to LDS                cp.async
//       sum += source * weight         for taps, steps of 16 channels
//   put phases in place                  sums += window(tap) * weights(tap)     wgmma
//   elementwise op                     elementwise op, stored in place          whole lines
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @wgmma_windows(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "tile_images"},
    !transform.param<i64> {conv_compiler.option = "tile_rows"},
    !transform.param<i64> {conv_compiler.option = "tile_columns"},
    !transform.param<i64> {conv_compiler.option = "merged_groups"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %tile_images: !transform.param<i64> {transform.readonly},
    %tile_rows: !transform.param<i64> {transform.readonly},
    %tile_columns: !transform.param<i64> {transform.readonly},
    %merged_groups: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // A workgroup has `tile_rows` x `tile_columns` units of result pixels of each of `tile_images`,
  // for `merged_groups` adjacent groups. How wave groups share them and the convolution's sizes are
  // in the others.
  func.call @wgmma_windows(%payload, %tile_images, %tile_rows, %tile_columns, %merged_groups,
                           %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
