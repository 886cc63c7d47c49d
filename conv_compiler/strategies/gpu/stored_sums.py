# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a matrix kernel stores: the result, partial sums in its order, or these as they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.loop_order import along_gemm_k

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


def stores_result(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether the matrix kernel stores the result itself.

    It does where there are no parts to add up, the columns lie in the result as one axis, and tiles
    are full or what is not in the result can be left out. Taps may be an axis by themselves, but
    not the innermost: what a workgroup has of the result's last axis must be contiguous (IREE 3.13
    cannot scatter by buffer instructions). Else taps and channels are one axis, in the order of the
    result (`passes/im2col.py`).
    """
    if split_k > 1 or tiling.taps_in_rows or tiling.merged_groups > 1:
        return False
    letters = problem.layout_row.grouped.weight
    if has_rest(problem, tiling) and not _masks(problem, target, tiling):
        return False
    is_sum = problem.result_type == problem.accumulator_type and not problem.fused
    if is_sum and letters.replace("*", "") == "GKC":
        return False  # the sums in their order are the result, and nothing is left to be made
    return _is_one_axis(problem, target, tiling)


def has_rest(problem: ConvProblem, tiling: GpuTiling) -> bool:
    """Whether rows or columns do not fill the tiles."""
    m, n, _ = tiling.workgroup
    taps = 1 if tiling.taps_outside else math.prod(problem.filter)
    columns = taps * (1 if tiling.channels_outside else problem.c)
    return bool(problem.k % m or columns % n)


def has_rows_innermost(problem: ConvProblem) -> bool:
    """Whether rows are the result's innermost axis, as in `fwd` and `bwd_data`."""
    return problem.layout_row.grouped.weight.endswith("K")


def has_lines(problem: ConvProblem, tiling: GpuTiling) -> bool:
    """Whether a lane's sums can be adjacent in the result: rows or, of instructions that are told
    so, columns are its innermost axis."""
    return has_rows_innermost(problem) or tiling.channels_outside


def _masks(problem: ConvProblem, target: Target, tiling: GpuTiling) -> bool:
    """Whether the kernel can leave out what is no element of the result."""
    is_plain = target.backend == "rocm" and bool(tiling.mma)
    return is_plain and has_lines(problem, tiling) and math.prod(problem.weight_shape) > 1


def stores_parts_in_order(
    problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int
) -> bool:
    """Whether the matrix kernel stores partial sums in the order of the result's axes.

    It does where a lane's sums are adjacent in the result, as in `fwd` and `bwd_data`: the kernel
    that adds them would else read or write single elements. Kernels of vector code do not.
    """
    is_plain = tiling.mma and not tiling.taps_in_rows and tiling.merged_groups == 1
    # Of one element no slice is read (`PlacedSum.is_extracted`).
    if target.backend != "rocm" or not is_plain or math.prod(problem.weight_shape) == 1:
        return False
    return (
        has_lines(problem, tiling)
        and _is_one_axis(problem, target, tiling)
        and not stores_result(problem, target, tiling, split_k)
    )


def _is_one_axis(problem: ConvProblem, target: Target, tiling: GpuTiling) -> bool:
    """Whether the columns lie in the result as one axis, and a tile has several of it adjacent."""
    letters = problem.layout_row.grouped.weight
    if tiling.channels_outside:
        return True
    if tiling.taps_outside:
        return not letters.endswith("*")
    if math.prod(problem.filter) == 1 or "*C" in letters:
        return True
    if target.backend == "rocm" and letters.endswith("K"):
        return "C*" in letters
    n_alone = tiling.inside == ("n",) or math.prod(problem.out_image) == 1
    return "C*" in letters and n_alone and along_gemm_k(problem, target)[1] > 1
