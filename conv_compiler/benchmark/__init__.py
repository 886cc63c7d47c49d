# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of ours beside those of other programs: the same data, in turns, checked first."""
