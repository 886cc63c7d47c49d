# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the passes `direct-kernel`, `pointwise-kernel` and `plane-kernel`."""
