# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of machine code, checked before anything is read from them."""
