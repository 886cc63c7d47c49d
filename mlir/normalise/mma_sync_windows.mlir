// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a weight gradient of small groups, channels last, to kernels of waves (sm_80 and later) that
// copy each pixel of the image to LDS once.
//
// Before:                          After:
//   for g, k, taps, c                forall part, merged groups                   workgroups
//     for n, pixels                    for tiles of output pixels
//       dW += gradient * image           gradient and window to LDS               cp.async
//   epilogue                             for steps of 16 pixels, taps, groups
//                                          P[s] += window(taps) * gradient        mma.sync
//                                    dW = sum over s of P[s], rounded             second kernel
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @mma_sync_windows(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "tile_images"},
    !transform.param<i64> {conv_compiler.option = "merged_groups"},
    !transform.param<i64> {conv_compiler.option = "wave_pieces"},
    !transform.param<i64> {conv_compiler.option = "stages"},
    !transform.param<i64> {conv_compiler.option = "parts"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %tile_images: !transform.param<i64> {transform.readonly},
    %merged_groups: !transform.param<i64> {transform.readonly},
    %wave_pieces: !transform.param<i64> {transform.readonly},
    %stages: !transform.param<i64> {transform.readonly},
    %parts: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // A tile has output pixels of `tile_images`, and LDS has `stages` tiles. A workgroup has
  // `merged_groups` and every so many tile (`parts`), and a wave of it `wave_pieces` pieces of the
  // output gradient. The pixels of a tile are in the others.
  func.call @mma_sync_windows(%payload, %tile_images, %merged_groups, %wave_pieces, %stages,
                              %parts, %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
