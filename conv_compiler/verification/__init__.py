# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a kernel is right: data, reference, tolerance and comparison."""
