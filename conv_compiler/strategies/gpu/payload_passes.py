# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that make a batched GEMM on whole tiles of a payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.strategies.f8_emulation import emulation_passes
from conv_compiler.strategies.gpu.loop_order import k_multiple
from conv_compiler.strategies.gpu.phases_in_place import stores_phases
from conv_compiler.strategies.gpu.reversed_taps import reads_reversed
from conv_compiler.strategies.gpu.stored_sums import stores_parts_in_order, stores_result
from conv_compiler.strategies.strategy import GpuTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target


def passes(problem: ConvProblem, target: Target, strategy: Strategy) -> tuple[Pass, ...]:
    """The payload as a batched GEMM on whole tiles."""
    from conv_compiler.passes.im2col import Im2col
    from conv_compiler.passes.split_k import SplitK
    from conv_compiler.passes.sum_parts import SumParts

    tiling = strategy.tiling
    assert isinstance(tiling, GpuTiling)
    m, n, k = tiling.workgroup
    tile_k = k if tiling.outside else k_multiple(k)
    stores = stores_result(problem, target, tiling, strategy.split_k)
    in_order = stores_parts_in_order(problem, target, tiling, strategy.split_k)
    return (
        *emulation_passes(problem, target, tiling.mma),
        Im2col(
            tile_m=m,
            tile_n=n,
            tile_k=tile_k,
            outside=tiling.outside,
            inside=tiling.inside,
            taps_outside=tiling.taps_outside,
            channels_outside=tiling.channels_outside,
            taps_in_rows=tiling.taps_in_rows,
            merged_groups=tiling.merged_groups,
            columns_as_stored=stores or in_order,
            reversed_taps=not strategy.script and reads_reversed(problem, target, tiling),
        ),
        SplitK(split_k=strategy.split_k, tile_k=tile_k),
        SumParts(
            stores_result=stores,
            parts_as_stored=in_order,
            channels_outside=tiling.channels_outside,
            stores_phases=stores_phases(problem, target, tiling, strategy.split_k),
        ),
    )
