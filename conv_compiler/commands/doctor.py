# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conv-compiler doctor`."""

EXAMPLE = "doctor"
