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
// step.
module attributes { transform.with_named_sequence } {

func.func private @emulate_f8(!transform.any_op, !transform.any_param)
func.func private @implicit_gemm(
    !transform.any_op,
    !transform.param<i64> {conv_compiler.option = "tile_m"},
    !transform.param<i64> {conv_compiler.option = "tile_n"},
    !transform.param<i64> {conv_compiler.option = "tile_k"},
    !transform.param<i64> {conv_compiler.option = "split_k"},
    !transform.any_param)

transform.named_sequence @normalise(
    %payload: !transform.any_op {transform.readonly},
    %f8: !transform.any_param {transform.readonly},
    %tile_m: !transform.param<i64> {transform.readonly},
    %tile_n: !transform.param<i64> {transform.readonly},
    %tile_k: !transform.param<i64> {transform.readonly},
    %split_k: !transform.param<i64> {transform.readonly},
    %loops: !transform.any_param {transform.readonly}) {
  // Operands of 8-bit floats become bf16, where the kernel's instructions have no such floats.
  func.call @emulate_f8(%payload, %f8) : (!transform.any_op, !transform.any_param) -> ()
  // im2col of both operands, with zeros up to whole tiles; split-K: gemm_k in `split_k` parts, each
  // whole tiles, and a kernel that sums the parts in rising order. `loops` says which summed loops
  // lie outside the tile, whether taps are rows, columns or a loop of their own, which groups are
  // merged, and whether the kernel stores the result itself.
  func.call @implicit_gemm(%payload, %tile_m, %tile_n, %tile_k, %split_k, %loops)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>,
         !transform.param<i64>, !transform.any_param) -> ()
  transform.yield
}
}
