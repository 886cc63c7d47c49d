# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for reading and writing IR: ops, scalars, attributes and the loops of the contraction."""
