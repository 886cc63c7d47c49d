# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of the pass `interleave`: the operations of a GPU kernel's main loop."""
