# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `vgpu`: any AMD kernel on the virtual GPU, without a convolution."""
