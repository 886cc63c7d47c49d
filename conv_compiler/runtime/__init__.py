# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading compiled kernels and calling them on devices. Never imports the compiler."""
