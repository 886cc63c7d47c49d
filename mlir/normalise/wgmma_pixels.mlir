// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a forward pass or data gradient, channels last, to kernels of wave groups (sm_90a) or waves
// (sm_80).
//
// Before:                          After:
//   for g, result pixels, channels   forall part, group, phase, m tile, n tile       workgroups
//     for taps, channels               for tiles of the phase's taps and channels    LDS, stages
//       sum += source * weight           sums += source * weight                     wgmma or mma.sync
//   put phases in place                elementwise op, stored in place               whole lines
//   elementwise op                   sum over the parts, if there are several        second kernel
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @wgmma_pixels(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "tile_m"},
    !transform.param<i64> {conv_compiler.option = "tile_n"},
    !transform.param<i64> {conv_compiler.option = "tile_k"},
    !transform.param<i64> {conv_compiler.option = "stages"},
    !transform.param<i64> {conv_compiler.option = "split_k"},
    !transform.any_param)
func.func private @emulate_f8(!transform.any_op, !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %tile_m: !transform.param<i64> {transform.readonly},
    %tile_n: !transform.param<i64> {transform.readonly},
    %tile_k: !transform.param<i64> {transform.readonly},
    %stages: !transform.param<i64> {transform.readonly},
    %split_k: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly},
    %f8: !transform.any_param {transform.readonly}) {
  // A workgroup has `tile_m` pixels x `tile_n` channels and brings `tile_k` of gemm_k of both
  // operands to one of `stages` places in LDS; `split_k` parts, which a second kernel adds in rising
  // order. How wave groups or waves share a tile and the convolution's sizes are in the others.
  func.call @wgmma_pixels(%payload, %tile_m, %tile_n, %tile_k, %stages, %split_k, %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.param<i64>, !transform.any_param) -> ()
  // What is behind the kernels may still round to 8-bit floats, in integer arithmetic.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  transform.yield
}
}
