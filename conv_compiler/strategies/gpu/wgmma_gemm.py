# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategies `wgmma_gemm` and `mma_sync_gemm`: weight gradients, channels last.

Copies go to LDS by themselves, both operands as they lie in memory. Hopper's wave groups, of four
waves each, multiply 64 rows by up to 256 columns straight from there. Waves of any chip since sm_80
read fragments. The pass `passes/wgmma_gemm.py` writes the kernel down to its addresses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS, WAVES, WarpGroups
from conv_compiler.strategies.gpu.warp_group_kind import (
    MOST_ELEMENTS,
    MOST_WORKGROUPS,
    PROMISED,
    few_channels,
    few_elements,
    has_kernel,
    instruction_of,
    multiply_its_types,
    ranked,
    schedule,
    tiling_for,
    tiling_of,
    whole_parts,
)
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    SUM_THREADS,
    block_of,
    column_tiles,
    columns_of,
    k_tiles,
    piece_of,
    predict,
    resident,
    sum_slices,
    table_of,
    whole_elements,
    workgroups,
)
from conv_compiler.strategies.kind import Lowering, Promises, StrategyKind
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def misfit(problem: ConvProblem, target: Target, table: WarpGroups = WARP_GROUPS) -> str:
    """The rule that a problem breaks; empty where it fits."""
    row = problem.layout_row.grouped
    rule, multiplied = multiply_its_types(target, table.by_wave_groups)
    piece = piece_of(problem)
    largest = max(
        whole_elements(problem.input_shape, problem.c, piece),
        whole_elements(problem.output_shape, problem.k, piece),
    )
    types = set(problem.operand_dtypes)
    rules = {
        rule: len(types) == 1 and types <= multiplied and problem.terms is None,
        "it computes weight gradients": not isinstance(problem, EquivalentWgrad)
        and problem.direction == "bwd_weight",
        "channels lie last in its layouts": (row.input, row.output)
        in (("N*GC", "N*GK"), ("GN*C", "GN*K")),
        few_channels(): min(problem.k, problem.c) >= WARP_GROUPS.least_channels,
        few_elements(): largest < MOST_ELEMENTS,
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def merges(problem: ConvProblem) -> list[int]:
    """How many groups may be one to the products: as many as are adjacent and have a block of
    channels together, and one where that is too few to be copied in whole pieces."""
    row = problem.layout_row.grouped
    most, piece = block_of(problem) // max(problem.k, problem.c), piece_of(problem)
    found = {1}
    is_wide = min(problem.k, problem.c) >= WARP_GROUPS.least_merged_channels
    if is_wide and (row.input, row.output) == ("N*GC", "N*GK"):
        found |= {
            count
            for count in range(2, most + 1)
            if problem.g % count == 0
            and problem.k * count % piece == problem.c * count % piece == 0
        }
    return sorted({1, max(found)})


def tilings(
    problem: ConvProblem, target: Target, table: WarpGroups = WARP_GROUPS
) -> Iterator[WarpGroupTiling]:
    """The tiles of the table that LDS holds and that are no more than one block larger than the
    problem; such that are no power of two only where they fit its columns."""
    (dtype,) = set(problem.operand_dtypes)
    for merged in merges(problem):
        for tried in table.tried_tiles:
            m, n, _ = tried[0]
            columns = columns_of(problem, merged)
            if m - 64 >= problem.k * merged or n - 64 >= columns:
                continue
            if n & (n - 1) and -(-columns // n) * n > (1 + table.most_added_share) * columns:
                continue
            tiling = tiling_for(table.by_wave_groups, dtype, tried, merged)
            if has_kernel(target, tiling):
                yield tiling


def _fits_grid(problem: ConvProblem, tiling: WarpGroupTiling, split_k: int) -> bool:
    """Whether numbers of workgroups and of partial sums are within their bits."""
    across = column_tiles(problem, tiling.workgroup[1], tiling.merged_groups)
    parts = split_k * math.prod(problem.weight_shape)
    return (
        max(across, split_k * problem.g) <= MOST_WORKGROUPS
        and parts < MOST_ELEMENTS
        and split_k <= k_tiles(problem, tiling)
    )


def filled_parts(problem: ConvProblem, tiling: WarpGroupTiling, split_k: int) -> int:
    """The parts, of so many, that have pixels: a part is whole tiles."""
    return whole_parts(k_tiles(problem, tiling), split_k)


def splits(problem: ConvProblem, target: Target, tiling: WarpGroupTiling) -> list[int]:
    """Split-K factors that fill the chip's units a whole number of times, and those below that
    cut the loop evenly."""
    slots = target.compute_units * resident(target, tiling)
    tiles, most = workgroups(problem, tiling), k_tiles(problem, tiling)
    found, table = {1}, table_of(tiling)
    for rounds in table.tried_rounds_times:
        parts = max(1, min(int(slots * rounds) // tiles, most // table.least_iterations))
        found |= {filled_parts(problem, tiling, one) for one in (parts, max(1, parts - 1))}
    return sorted(one for one in found if _fits_grid(problem, tiling, one))


def candidates(
    kind: CopiedGemm, problem: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
) -> tuple[Strategy, ...]:
    """Tilings with the best split-K factor each, fastest first."""
    if misfit(problem, target, kind.table):
        return ()
    found = []
    for tiling in tilings(problem, target, kind.table):
        if tile not in ((), tiling.workgroup):
            continue
        several = splits(problem, target, tiling)
        if split_k:
            asked = filled_parts(problem, tiling, split_k)
            several = [asked] if _fits_grid(problem, tiling, asked) else []
        found += [(predict(problem, target, tiling, parts), parts, tiling) for parts in several]
    return ranked(kind.name, found)


def passes(problem: ConvProblem, target: Target, one: Strategy) -> tuple[Pass, ...]:
    """The payload as kernels that the pass writes."""
    from conv_compiler.passes.wgmma_gemm import WgmmaGemm

    tiling = tiling_of(one)
    (m, n, k), (groups_m, groups_n) = tiling.workgroup, tiling.warp_groups
    return (
        WgmmaGemm(
            tile_m=m,
            tile_n=n,
            tile_k=k,
            groups_m=groups_m,
            groups_n=groups_n,
            stages=tiling.stages,
            split_k=one.split_k,
            sum_threads=SUM_THREADS,
            sum_slices=sum_slices(problem, target, one.split_k),
            merged_groups=tiling.merged_groups,
            instruction=instruction_of(tiling),
        ),
    )


def pads(problem: ConvProblem, one: Strategy) -> bool:
    """Whether a kernel rounds channels up to whole pieces."""
    is_merged = tiling_of(one).merged_groups > 1
    piece = piece_of(problem)
    return not is_merged and bool(problem.k % piece or problem.c % piece)


@dataclass(frozen=True, kw_only=True)
class CopiedGemm(StrategyKind):
    """Kernels that a pass writes (`passes/wgmma_gemm.py`), by the instruction of a table."""

    table: WarpGroups = WARP_GROUPS
    normalise: str = "wgmma_gemm"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tiles of the table that fit, fastest first."""
        return candidates(self, wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernels, and the pipeline behind it."""
        steps = passes(wgrad, target, one)
        return Lowering(passes=steps, schedule=schedule(target, one, pads=pads(wgrad, one)))

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return splits(wgrad, target, tiling_of(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that have pixels."""
        return filled_parts(wgrad, tiling_of(one), split_k)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by a formula fitted to times on a card."""
        return predict(wgrad, target, tiling_of(one), one.split_k)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction, and copies that go to LDS by themselves."""
        return Promises(instruction=PROMISED[instruction_of(tiling_of(one))], loads_to_lds=True)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target, self.table)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = tiling_of(one)
        return workgroups(wgrad, tiling), k_tiles(wgrad, tiling)


WGMMA_GEMM = CopiedGemm(
    name="wgmma_gemm",
    description="copies to LDS by themselves, products of wave groups from there; Hopper",
    tile="m x n x gemm_k of a workgroup, one of the table of wave groups",
    backends=("cuda",),
)
MMA_SYNC_GEMM = CopiedGemm(
    name="mma_sync_gemm",
    description="copies to LDS by themselves, fragments of waves from there; sm_80 and later",
    tile="m x n x gemm_k of a workgroup, one of the table of waves",
    backends=("cuda",),
    table=WAVES,
)
