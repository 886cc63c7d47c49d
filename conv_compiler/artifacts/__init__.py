# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compilation leaves: the `.vmfb`, its record and the facts of its kernels."""
