// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the convolution to a batched GEMM on whole tiles: step 0 of implicit_gemm.mlir, and of
// vector_gemm.mlir.
//
// Before:                                        After:
//   for g, k, taps, c                              one kernel, scheduled by those scripts:
//     for n, pixels                                  A = im2col(gradient)  B = im2col(image)
//       dW += gradient * image                       for s, g, m, n
//                                                      for k of part s
//                                                        P[s] += A * B
//                                                  one kernel, if there are parts:
//                                                    dW = sum over s of P[s]
//
// No op of the transform dialect does this for a weight gradient, so each step is a pass of ours,
// named as its file in passes/. A declaration says which option of the pass a parameter holds; one
// without a name holds the others as a dictionary, or `false` where the kernel does without the
// step. Each step leaves a module that computes the same gradient.
module attributes { transform.with_named_sequence } {

func.func private @emulate_f8(!transform.any_op, !transform.any_param)
func.func private @channels_last(!transform.any_op, !transform.any_param)
func.func private @im2col(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "tile_m"},
    !transform.param<i64> {conv_compiler.option = "tile_n"},
    !transform.param<i64> {conv_compiler.option = "tile_k"},
    !transform.any_param)
func.func private @split_k(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "split_k"},
    !transform.any_param)
func.func private @sum_parts(!transform.any_op, !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %f8: !transform.any_param {transform.readonly},
    %copies: !transform.any_param {transform.readonly},
    %tile_m: !transform.param<i64> {transform.readonly},
    %tile_n: !transform.param<i64> {transform.readonly},
    %tile_k: !transform.param<i64> {transform.readonly},
    %loops: !transform.any_param {transform.readonly},
    %split_k: !transform.param<i64> {transform.readonly},
    %part: !transform.any_param {transform.readonly},
    %store: !transform.any_param {transform.readonly}) {
  // Operands of 8-bit floats become bf16, where the kernel's instructions have no such floats.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  // Operands of channels-first layouts are copied channels last, where the strategy says so.
  func.call @channels_last(%payload, %copies) : (!transform.any_op, !transform.any_param) -> ()
  // im2col of both operands, with zeros up to whole tiles: P[g, m, n] = sum over k of A * B, and
  // dW read from its places in P. `loops` says which summed loops lie outside the tile, whether
  // taps are rows, columns or a loop of their own, which groups are merged, and whether columns
  // have the order of the result.
  func.call @im2col(%payload, %tile_m, %tile_n, %tile_k, %loops)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.any_param) -> ()
  // Split-K: gemm_k in `split_k` parts, P[s, g, m, n], and a sum over s in front of the places.
  // `part` says of which tile of gemm_k a part is a whole number.
  func.call @split_k(%payload, %split_k, %part)
      : (!transform.any_op, !transform.param<i64>, !transform.any_param) -> ()
  // The sum of the parts in rising order, the places and the epilogue become one kernel. `store`
  // says whether the kernel of the GEMM stores the result itself.
  func.call @sum_parts(%payload, %store) : (!transform.any_op, !transform.any_param) -> ()
  transform.yield
}
}
