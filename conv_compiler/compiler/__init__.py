# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a problem to an artifact: the stages, the proofs, and the compiler's own tables checked."""
