# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the pass `direct-kernel`."""
