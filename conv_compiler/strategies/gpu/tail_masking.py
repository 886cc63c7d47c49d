"""Where parts of a GPU kernel, or its last tiles of gemm_k, have fewer pixels than others, and
which operand needs no zeros for that (docs/gpu.md, "Which summed loops run where")."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def is_uneven(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether zeros are counted for parts, or the last tiles of gemm_k, that have fewer pixels.

    With all loops inside only where they decide: without windows on RDNA, whose matrix instructions
    have no unit of their own. The operations of FLAT and, on gfx9, of POINTWISE were counted with
    them.
    """
    if around := tiling.outside:
        chunk = chunk_of((around, tiling.inside), tiling.workgroup[2])
        return summed_length(problem, around, tiling.taps_in_rows, chunk) % split_k > 0
    is_rdna = target.backend == "rocm" and not is_cdna(target)
    whole = split_k * k_multiple(tiling.workgroup[2])
    return is_rdna and problem.is_pointwise and problem.gemm_k % whole > 0


def is_cdna(target: Target) -> bool:
    """Whether matrix instructions have a unit of their own beside an AMD chip's vector unit."""
    return target.backend == "rocm" and rank_facts(target).matrix_beside_valu


def unmasked_operand(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> str:
    """The operand, "a" or "b", that needs no zeros where a part has no pixels; empty for none.

    The one that is a single pixel a row of gemm_k, for the other one's windows have zeros already,
    where these are all that it would have: its columns, and gemm_k inside, fill their tiles.
    Without windows both are such, and the one that a workgroup reads more of is taken.
    """
    m, n, k = tiling.workgroup
    channels = problem.k * tiling.merged_groups, problem.c * tiling.merged_groups
    whole = {"a": channels[0] % m == 0, "b": channels[1] % n == 0}
    chunk = chunk_of((tiling.outside, tiling.inside), k)
    inside = summed_length(problem, tiling.inside, tiling.taps_in_rows, chunk)
    if not (tiling.outside and inside % k == 0 and is_uneven(problem, target, tiling, split_k)):
        return ""
    if max(along_gemm_k(problem, target)) > 1:
        return ""
    single = "b" if tiling.taps_in_rows else "a"
    if problem.is_pointwise:
        single = max(whole, key=lambda side: (whole[side], n if side == "b" else m))
    return single if whole[single] else ""
