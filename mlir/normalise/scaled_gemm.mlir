// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a contraction of operands with block scales to a kernel whose matrix instructions take the
// scales, which gpu_depthwise.pipeline brings to instructions.
//
// Before:                                After:
//   bf16 of elements and scales            forall groups, rows, columns             workgroups
//   for g, rows, columns                     forall lanes of some waves             threads
//     for pixels, n                            for pixels, 128 of n
//       sum += a * b                             sums += scaled product             registers
//   elementwise op                             elementwise op, vectors stored
//
// No op of the transform dialect does this. The step is a pass of ours, named as its file in
// passes/. The declaration says which option of the pass a parameter holds; the one without a name
// holds the others as a dictionary.
module attributes { transform.with_named_sequence } {

func.func private @scaled_gemm(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "row_tiles"},
    !transform.param<i64> {conv_compiler.option = "column_tiles"},
    !transform.param<i64> {conv_compiler.option = "waves"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %row_tiles: !transform.param<i64> {transform.readonly},
    %column_tiles: !transform.param<i64> {transform.readonly},
    %waves: !transform.param<i64> {transform.readonly},
    %others: !transform.any_param {transform.readonly}) {
  // `row_tiles` x `column_tiles` products of 16x16 are a wave's; sizes of the problem are in the
  // others.
  func.call @scaled_gemm(%payload, %row_tiles, %column_tiles, %waves, %others)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.any_param) -> ()
  transform.yield
}
}
