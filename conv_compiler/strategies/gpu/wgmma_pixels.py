# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategies `wgmma_pixels` and `mma_sync_pixels`: forward passes and data gradients.

Channels last, by Hopper's wave groups or by waves. Rows of the GEMM are result pixels, columns
result channels, and both operands are multiplied from LDS as they lie in memory
(`passes/wgmma_pixels.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import (
    PHASE_TABLES,
    PIXEL_WARP_GROUPS,
    PIXEL_WAVES,
    WARP_GROUPS,
    PixelWarpGroups,
)
from conv_compiler.strategies.gpu.pixel_shape import shape_of
from conv_compiler.strategies.gpu.pixel_tilings import tilings
from conv_compiler.strategies.gpu.warp_group_kind import (
    MOST_ELEMENTS,
    MOST_WORKGROUPS,
    convolution_of,
    few_channels,
    few_elements,
    instruction_of,
    multiply_its_types,
    promised,
    ranked,
    schedule,
    tiling_of,
    whole_parts,
)
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    SUM_THREADS,
    piece_of,
    whole_elements,
)
from conv_compiler.strategies.gpu.wgmma_pixels_cost import (
    k_tiles,
    predict,
    table_of,
    transposes_weight,
    weight_line,
    workgroups,
)
from conv_compiler.strategies.kind import Lowering, Promises, StrategyKind
from conv_compiler.strategies.strategy import Strategy
from conv_compiler.strategies.warp_group_tiling import WarpGroupTiling

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Elements that an instruction's constant adds to an address, for the lines that a thread copies.
MOST_STEP = 2**22
# Taps that a choice lists one by one.
MOST_TAPS = 2**14


def misfit(wgrad: ConvProblem, target: Target, table: PixelWarpGroups = PIXEL_WARP_GROUPS) -> str:
    """The rule that a problem breaks; empty where it fits."""
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem = wgrad.of
    row = problem.layout_row.grouped
    rule, multiplied = multiply_its_types(target, table.by_wave_groups)
    if table.by_wave_groups:
        multiplied |= set(target.wgmma_along_k)
    piece, types = piece_of(problem), set(problem.operand_dtypes)
    own = weight_line(problem)
    largest = max(
        whole_elements(problem.input_shape, problem.c, piece),
        whole_elements(problem.output_shape, problem.k, piece),
        whole_elements(problem.weight_shape, own, piece),
    )
    taps = math.prod(problem.filter)
    step = max(problem.g * problem.k, problem.g * problem.c, own * taps)
    phases = 1 if problem.direction == "fwd" else math.prod(problem.stride)
    rules = {
        rule: problem.terms is None
        and len(types) == 1
        and types <= multiplied
        and all(DTYPES[one].mlir == problem.data_type.mlir for one in types),
        "its operands have no ops": not any(problem.operand_ops),
        "no bias is added where channels of groups lie apart": problem.g == 1
        or row.output == "N*GK"
        or not (problem.fused and problem.fused.d_per == "channel"),
        "channels lie last in its layouts": (row.input, row.output)
        in (("N*GC", "N*GK"), ("GN*C", "GN*K"))
        and row.weight.endswith("C"),
        few_channels(): min(problem.k, problem.c) >= WARP_GROUPS.least_channels,
        few_elements(): largest < MOST_ELEMENTS,
        f"fewer than {MOST_STEP} elements lie between adjacent pixels, or weights of channels": step
        < MOST_STEP,
        f"its filter has {MOST_TAPS} taps at most": math.prod(problem.filter) <= MOST_TAPS,
        f"its strides have {PHASE_TABLES.most_phase_pixels} phases at most": phases
        <= PHASE_TABLES.most_phase_pixels,
    }
    broken = next((rule for rule, holds in rules.items() if not holds), "")
    return broken or ("" if any(shape_of(problem).taps) else "some tap meets a pixel")


def _fits(problem: ConvProblem, tiling: WarpGroupTiling, split_k: int) -> bool:
    """Whether numbers of workgroups and of partial sums are within their bits and each part has
    a tile of gemm_k; with a weight that stays or a tail a workgroup has all of gemm_k."""
    if split_k > 1 and (tiling.row_workgroups or tiling.tail):
        return False
    elements = math.prod(
        problem.shape(
            problem.layout_row.input
            if problem.direction == "bwd_data"
            else problem.layout_row.output
        )
    )
    if split_k > 1 and split_k * elements >= MOST_ELEMENTS:
        return False
    return split_k <= k_tiles(problem, tiling) and split_k * problem.g <= MOST_WORKGROUPS


def filled_parts(problem: ConvProblem, tiling: WarpGroupTiling, split_k: int) -> int:
    """The parts, of so many, that have products: a part is whole tiles."""
    return whole_parts(k_tiles(problem, tiling), split_k)


def splits(problem: ConvProblem, target: Target, tiling: WarpGroupTiling) -> list[int]:
    """Split-K factors worth trying: several where one leaves units without work."""
    found, table = {1}, table_of(tiling)
    if workgroups(problem, tiling) < table.few_workgroups * target.compute_units:
        found |= {filled_parts(problem, tiling, parts) for parts in table.tried_parts}
    return sorted(one for one in found if _fits(problem, tiling, one))


def candidates(
    kind: CopiedPixels, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
) -> tuple[Strategy, ...]:
    """Tilings with the best split-K factor each, fastest first."""
    if misfit(wgrad, target, kind.table):
        return ()
    assert isinstance(wgrad, EquivalentWgrad)
    problem, found = wgrad.of, []
    for tiling in tilings(problem, target, kind.table):
        if tile not in ((), tiling.workgroup):
            continue
        several = splits(problem, target, tiling)
        if split_k:
            asked = filled_parts(problem, tiling, split_k)
            several = [asked] if _fits(problem, tiling, asked) else []
        found += [(predict(problem, target, tiling, parts), parts, tiling) for parts in several]
    return ranked(kind.name, found)


def passes(wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[Pass, ...]:
    """The payload as kernels that the pass writes, and what rounds to 8-bit floats behind them."""
    from conv_compiler.passes.emulate_f8 import EmulateF8
    from conv_compiler.passes.wgmma_pixels import WgmmaPixels

    assert isinstance(wgrad, EquivalentWgrad)
    problem, tiling = wgrad.of, tiling_of(one)
    (m, n, k), (groups_m, groups_n) = tiling.workgroup, tiling.warp_groups
    return (
        WgmmaPixels(
            tile_m=m,
            tile_n=n,
            tile_k=k,
            groups_m=groups_m,
            groups_n=groups_n,
            stages=tiling.stages,
            split_k=one.split_k,
            sum_threads=SUM_THREADS,
            **sizes_of(problem),
            groups_outside=problem.layout_row.grouped.input.startswith("G"),
            merged_groups=tiling.merged_groups,
            row_workgroups=tiling.row_workgroups,
            tail=tiling.tail.numbers if tiling.tail else (),
            instruction=instruction_of(tiling),
        ),
        *((EmulateF8(),) if problem.operand_type.is_f8 else ()),
    )


def copied(problem: ConvProblem) -> int:
    """Operands that a kernel in front copies: their channels are rounded up to whole pieces, or the
    weight is to lie along gemm_k."""
    sources, _ = channels(problem)
    piece = piece_of(problem)
    return bool(sources % piece) + bool(transposes_weight(problem) or problem.c % piece)


@dataclass(frozen=True, kw_only=True)
class CopiedPixels(StrategyKind):
    """Kernels that a pass writes (`passes/wgmma_pixels.py`), by the instruction of a table."""

    table: PixelWarpGroups = PIXEL_WARP_GROUPS
    normalise: str = "wgmma_pixels"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Tiles of the table that fit, fastest first."""
        return candidates(self, wgrad, target, split_k, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernels, and the pipeline behind it."""
        steps = passes(wgrad, target, one)
        pads = bool(copied(convolution_of(wgrad)))
        return Lowering(passes=steps, schedule=schedule(target, one, pads=pads))

    def splits(self, wgrad: ConvProblem, target: Target, one: Strategy) -> list[int]:
        """Split-K factors that fill the chip."""
        return splits(convolution_of(wgrad), target, tiling_of(one))

    def filled_parts(self, wgrad: ConvProblem, one: Strategy, split_k: int) -> int:
        """Parts that have products."""
        return filled_parts(convolution_of(wgrad), tiling_of(one), split_k)

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by a formula fitted to times on a card."""
        return predict(convolution_of(wgrad), target, tiling_of(one), one.split_k)

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The instruction, and copies that go to LDS by themselves."""
        _, results = channels(convolution_of(wgrad))
        return Promises(instruction=promised(tiling_of(one), results), loads_to_lds=True)

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks."""
        return misfit(wgrad, target, self.table)

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        tiling = tiling_of(one)
        return workgroups(convolution_of(wgrad), tiling), k_tiles(convolution_of(wgrad), tiling)


WGMMA_PIXELS = CopiedPixels(
    name="wgmma_pixels",
    description="fwd and bwd_data by wave groups, operands copied to LDS by themselves; Hopper",
    tile="pixels x channels x gemm_k of a workgroup, one of the table of wave groups",
    backends=("cuda",),
)
MMA_SYNC_PIXELS = CopiedPixels(
    name="mma_sync_pixels",
    description="fwd and bwd_data by waves, operands copied to LDS by themselves; sm_80 and later",
    tile="pixels x channels x gemm_k of a workgroup, one of the table of waves",
    backends=("cuda",),
    table=PIXEL_WAVES,
)
