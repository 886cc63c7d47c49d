# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles and workgroups of depthwise kernels with pixels in the lanes, by counting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import divisors
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.plane_sizes import PlaneSizes
from conv_compiler.problem.slides import even_sizes
from conv_compiler.strategies.cpu.cost_constants import (
    DIRECT,
    DISTRIBUTIONS,
    PLANES,
    REGISTER_TILES,
)
from conv_compiler.strategies.cpu.workgroup_shares import load_imbalance
from conv_compiler.strategies.cpu_tilings import PlaneTiling
from conv_compiler.targets.host import STACK_BYTES
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.processors import Processor


def tilings(problem: ConvProblem, processor: Processor) -> Iterator[tuple[float, PlaneTiling]]:
    """Register tiles with the cycles of all cores, each with the best of its distributions."""
    sizes, cores = sizes_of(problem), processor.cores
    native = processor.unit.lanes * 4 // problem.accumulator_type.bytes
    *outer, width = problem.out_image if problem.direction == "fwd" else problem.image
    height, planes = math.prod(outer), problem.n * problem.g
    lanes = native
    while lanes // 2 >= max(width, PLANES.least_lane_pixels):
        lanes //= 2
    vectors_of_row = -(-width // lanes)
    wanted = min(DISTRIBUTIONS.core_workgroups * cores, planes * height)
    for rows, vectors in product(PLANES.tried_rows, PLANES.tried_tile_registers):
        if vectors > vectors_of_row or rows > height:
            continue
        if rows * vectors > processor.unit.registers // 2:
            continue
        found = []
        for rows_share, planes_share in product(divisors(height), divisors(planes)):
            workgroups = height // rows_share * (planes // planes_share)
            if workgroups < wanted or (rows_share < height and planes_share > 1):
                continue
            one = PlaneTiling(
                rows=min(rows, rows_share),
                vectors=vectors,
                lanes=lanes,
                rows_share=rows_share,
                planes_share=planes_share,
            )
            options = PlaneSizes(**vars(one), **sizes)
            cycles = _workgroup(problem, options)
            if cycles:
                whole = cycles * workgroups * (1 + load_imbalance(workgroups, cores))
                found.append((whole, planes_share, one))
        if found:
            cycles, _, one = min(found, key=lambda entry: entry[:2])
            yield cycles, one


def _workgroup(problem: ConvProblem, options: PlaneSizes) -> float:
    """Cycles of a workgroup; none where the stack does not hold its rows."""
    costs, bytes_ = REGISTER_TILES, problem.accumulator_type.bytes
    if options.copied_rows * options.row_pixels * bytes_ > STACK_BYTES:
        return 0.0
    _, column = options.slides
    taps = len(options.reads(0)), len(options.reads(1))
    copy = options.copied_rows * -(-options.row_pixels // options.lanes) * PLANES.copy_cycles
    products = 0.0
    for rows, count in even_sizes(options.rows_share, options.rows):
        loads = (rows + taps[0] - 1) * taps[1]
        step = max(
            rows * math.prod(taps) / costs.started_fma_instructions,
            (loads + math.prod(taps)) / costs.started_load_instructions,
        )
        vectors = -(-column.outs // options.lanes)
        products += count * (vectors * (step + rows) + DIRECT.tile_cycles)
    moved = options.copied_rows * column.size * problem.data_type.bytes
    moved += options.rows_share * column.outs * problem.result_type.bytes
    plane = copy + products + moved / LINE_BYTES * DIRECT.near_line_cycles
    return options.planes_share * (plane + PLANES.plane_cycles) + DIRECT.workgroup_cycles
