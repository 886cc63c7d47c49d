# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the passes that write a whole CPU kernel: packing, products, sums and stores."""
