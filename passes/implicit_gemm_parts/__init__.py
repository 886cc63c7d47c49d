"""Parts of the pass `implicit_gemm`: its operands, its contraction and its stores."""
