# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies for GPUs: implicit GEMM, vector GEMM and depthwise."""
