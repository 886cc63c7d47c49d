# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the tail of gemm_k, and rows beyond the result, are masked.

Where parts or tiles have unequal numbers of pixels, one operand at least needs zeros where there is
no pixel; the other may keep what it reads. Rows beyond the result may keep it too, for nothing
stores their sums (docs/gpu.md, "Which summed loops run where").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.facts import rank_facts
from conv_compiler.strategies.gpu.loop_order import (
    along_gemm_k,
    chunk_of,
    k_multiple,
    summed_length,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


class Tail(NamedTuple):
    """Whether the rows of a tail are tested and masked, and the operand ("a", "b" or none) that is
    not. `rows` are the operands, of "a" and "b", whose rows beyond the result are not either."""

    is_masked: bool
    unmasked: str
    rows: str = ""


NO_TAIL = Tail(is_masked=False, unmasked="")


def tail_of(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> Tail:
    """The tail of a tiling with a split-K factor, as its cost counts it."""
    unmasked = unmasked_operand(problem, target, tiling, split_k)
    # With windows, which have zeros anyway, one unmasked operand leaves nothing to mask.
    needs_zeros = problem.is_pointwise or not unmasked
    return Tail(
        needs_zeros and has_tail(problem, target, tiling, split_k),
        unmasked,
        unmasked_rows(problem, target, tiling, split_k),
    )


def has_tail(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether zeros are counted for parts, or the last tiles of gemm_k, that have fewer pixels.

    With all loops inside they are counted only where they decide: without windows on RDNA, whose
    matrix instructions have no unit of their own. The instructions of the flat order and, on gfx9,
    of the pointwise one were counted with them.
    """
    if outside := tiling.outside:
        chunk = chunk_of((outside, tiling.inside), tiling.workgroup[2])
        parts = summed_length(problem, outside, tiling.taps_in_rows, chunk)
        return parts % split_k > 0
    is_rdna = target.backend == "rocm" and not is_cdna(target)
    full = split_k * k_multiple(tiling.workgroup[2])
    return is_rdna and problem.is_pointwise and problem.gemm_k % full > 0


def has_rest_inside(problem: ConvProblem, target: Target, tiling: GpuTiling) -> bool:
    """Whether the last tile of each outside iteration has elements beyond the inside loops.

    Along gemm_k, as in `fwd` and `bwd_data`, that is a number of channels that fills no tiles.
    """
    k = tiling.workgroup[2]
    if not tiling.outside or max(along_gemm_k(problem, target)) <= 1:
        return False
    chunk = chunk_of((tiling.outside, tiling.inside), k)
    return summed_length(problem, tiling.inside, tiling.taps_in_rows, chunk) % k > 0


def is_cdna(target: Target) -> bool:
    """Whether matrix instructions have a unit of their own beside an AMD chip's vector unit."""
    return target.backend == "rocm" and rank_facts(target).matrix_beside_valu


def unmasked_operand(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> str:
    """The operand, "a" or "b", that needs no zeros where a part has no pixels; empty for none.

    With windows it is the operand that is one pixel a row of gemm_k: the windows of the other have
    zeros already. Its columns, and gemm_k inside, must fill their tiles. Without windows both
    operands are such; the one that a workgroup reads more of is taken.
    """
    m, n, k = tiling.workgroup
    channels = problem.k * tiling.merged_groups, problem.c * tiling.merged_groups
    fills = {"a": channels[0] % m == 0, "b": channels[1] % n == 0}
    chunk = chunk_of((tiling.outside, tiling.inside), k)
    inside = summed_length(problem, tiling.inside, tiling.taps_in_rows, chunk)
    if not (tiling.outside and inside % k == 0 and has_tail(problem, target, tiling, split_k)):
        return ""
    if max(along_gemm_k(problem, target)) > 1:
        return ""
    one_pixel = "b" if tiling.taps_in_rows else "a"
    if problem.is_pointwise:
        one_pixel = max(fills, key=lambda side: (fills[side], n if side == "b" else m))
    return one_pixel if fills[one_pixel] else ""


def unmasked_rows(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> str:
    """The operands, of "a" and "b", whose rows beyond the result keep what they read.

    Their sums are not stored. So where gemm_k has no tail, and no window leaves its image, nothing
    of such an operand needs zeros. It is contiguous along gemm_k, and its rows do not fill their
    tiles. No NVIDIA card has run it.
    """
    is_plain = not (
        tiling.taps_in_rows
        or tiling.channels_outside
        or tiling.loads_to_lds
        or tiling.merged_groups > 1
    )
    if target.backend != "rocm" or not is_plain or not _parts_are_whole(problem, tiling, split_k):
        return ""
    m, n, _ = tiling.workgroup
    along_a, along_b = along_gemm_k(problem, target)
    columns = problem.c * (1 if tiling.taps_outside else math.prod(problem.filter))
    leaves_image = any((*problem.pad_low, *problem.pad_high))
    a = along_a > 1 and problem.k % m > 0
    b = along_b > 1 and columns % n > 0 and not leaves_image
    return "a" * a + "b" * b


def _parts_are_whole(problem: ConvProblem, tiling: GpuTiling, split_k: int) -> bool:
    """Whether all parts have equally many full tiles of gemm_k, each inside one pixel."""
    k = tiling.workgroup[2]
    if not tiling.outside:
        whole = problem.gemm_k % (split_k * k_multiple(k)) == 0
        return whole and problem.n % k == 0
    chunk = chunk_of((tiling.outside, tiling.inside), k)
    outside = summed_length(problem, tiling.outside, tiling.taps_in_rows, chunk)
    inside = summed_length(problem, tiling.inside, tiling.taps_in_rows, chunk)
    return outside % split_k == 0 and inside % k == 0
