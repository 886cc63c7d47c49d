# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `depthwise`: strips of output pixels and their arithmetic."""
