# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the passes `im2col`, `split_k` and `sum_parts`: operands, contraction, sums, stores."""
