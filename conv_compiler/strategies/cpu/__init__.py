# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies for CPUs: vector loops, packed operands and AMX."""
