# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `implicit_gemm`: its operands, its contraction and its stores."""
