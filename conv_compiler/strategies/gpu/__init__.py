"""Strategies for GPUs: implicit GEMM, vector GEMM and depthwise."""
