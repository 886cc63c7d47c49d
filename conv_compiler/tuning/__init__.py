# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searching over strategies by time."""
