# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to be computed: the convolution, its layouts and its data types."""
