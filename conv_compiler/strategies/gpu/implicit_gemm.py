# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `implicit_gemm`: which tiles of matrix instructions fit, and the payload for one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.strategies.gpu.cost import predict
from conv_compiler.strategies.gpu.cost_constants import SEARCH, SPLITS
from conv_compiler.strategies.gpu.gemm_kind import GemmKind, gpu_tiling
from conv_compiler.strategies.gpu.implicit_gemm_schedule import mma_schedule
from conv_compiler.strategies.gpu.instruction_counts import mma_of
from conv_compiler.strategies.gpu.loop_order import filled_parts, is_interleaved, iterations
from conv_compiler.strategies.gpu.payload_passes import passes
from conv_compiler.strategies.gpu.ranking import rank_tilings
from conv_compiler.strategies.gpu.search import Rough, full_splits, rough_cycles
from conv_compiler.strategies.gpu.tail_masking import unmasked_operand, unmasked_rows
from conv_compiler.strategies.gpu.tie_break import (
    prefer_few_lines,
    prefer_load_gain,
    prefer_low_valu,
    prefer_under_load,
)
from conv_compiler.strategies.gpu.tilings import (
    mma_tilings,
    other_copies,
    transposed_sides,
)
from conv_compiler.strategies.kind import GPU_BACKENDS, Lowering, Promises
from conv_compiler.strategies.strategy import GpuTiling, Strategy
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def mma_candidates(
    problem: ConvProblem, target: Target, split_k: int = 0, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Implicit-GEMM tilings and splits for every matrix instruction of the type, fastest first.

    `split_k` fixes the number of parts, 0 leaves it to the model; `tile` the workgroup's tile,
    which need not be one of the table. None on AMD chips for operands that buffer instructions do
    not reach.
    """
    if target.backend == "rocm" and _largest_operand(problem, target) >= BUFFER_BYTES:
        return ()
    best: dict[object, Rough] = {}
    for mma, tiling in mma_tilings(problem, target, tile):
        # The best way to compute a tile by each instruction; of one that is asked for, every way.
        kind = tiling.mma, tiling.subgroups if tile else tiling.workgroup
        entry = min(rough_cycles(problem, target, tiling, mma), key=_cycles)
        if entry.cycles < best.setdefault(kind, entry).cycles:
            best[kind] = entry
    forms = [
        replace(tiling, outside=loops[0], inside=loops[1]) for _, tiling, loops in best.values()
    ]

    def filled(tiling: GpuTiling) -> float:
        several = full_splits(problem, target, tiling, SPLITS.most_parts)
        if split_k:
            several = (filled_parts(problem, tiling, split_k),)
        return min(predict(problem, target, tiling, parts) for parts in several)

    forms.sort(key=filled)
    copied = [
        min(other_copies(problem, target, mma_of(target, tiling), tiling), key=filled)
        for tiling in forms[: SEARCH.modelled_tilings]
    ]
    ranked = rank_tilings("implicit_gemm", problem, target, copied, split_k)
    least_copied = rank_tilings(
        "implicit_gemm", problem, target, sorted(forms, key=_copied)[:1], split_k
    )
    return tuple(dict.fromkeys((*ranked, *least_copied)))


_cycles = attrgetter("cycles")


def _copied(tiling: GpuTiling) -> float:
    """Elements of both operands that a subgroup brings to LDS in an iteration."""
    m, n, k = tiling.workgroup
    return (m + n) * k / math.prod(tiling.subgroups)


def _largest_operand(problem: ConvProblem, target: Target) -> int:
    """Bytes of the larger operand."""
    elements = max(math.prod(problem.input_shape), math.prod(problem.output_shape))
    return elements * operand_bytes(problem, target)


@dataclass(frozen=True, kw_only=True)
class ImplicitGemm(GemmKind):
    """A GEMM on matrix instructions, its operands gathered by im2col on their way to LDS."""

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tilings of every matrix instruction for the data types, fastest first."""
        return mma_candidates(wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """im2col, split-K and the sum of the parts; then `mlir/implicit_gemm.mlir`."""
        return Lowering(
            passes=passes(wgrad, target, one), schedule=mma_schedule(wgrad, target, one)
        )

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction, and a main loop as its pipeline depth makes it.

        IREE pipelines no loop of as few iterations as the pipeline is deep.
        """
        tiling = gpu_tiling(one)
        count = iterations(wgrad, tiling, one.split_k)
        unmasked = unmasked_operand(wgrad, target, tiling, one.split_k) + unmasked_rows(
            wgrad, target, tiling, one.split_k
        )
        return Promises(
            instruction=mma_of(target, tiling).instruction,
            iterations=count,
            is_pipelined=tiling.stages > 1 and count > tiling.stages,
            is_interleaved=is_interleaved(tiling),
            keeps_loop=target.backend == "rocm",
            keeps_tail=bool(unmasked) and not one.script,
            reads_transposed=not one.script
            and any(transposed_sides(wgrad, target, mma_of(target, tiling), tiling)),
            loads_to_lds=tiling.loads_to_lds,
        )

    def prefer(
        self, wgrad: ConvProblem, target: Target, ranked: tuple[Strategy, ...]
    ) -> tuple[Strategy, ...]:
        """Among about equally fast ones, those with few vector instructions or reads, or that are
        faster under load, first."""
        for prefer in (prefer_low_valu, prefer_under_load, prefer_few_lines, prefer_load_gain):
            ranked = prefer(wgrad, target, ranked)
        return ranked


IMPLICIT_GEMM = ImplicitGemm(
    name="implicit_gemm",
    description="im2col into LDS, matrix instructions; on AMD software pipelined",
    tile="m x n x gemm_k of a workgroup: whole matrix instructions, shared evenly by "
    "its subgroups and threads, that registers and LDS hold",
    backends=GPU_BACKENDS,
)
