# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles and workgroups of kernels with the pixels of a row in the lanes, by counting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import divisors
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.plane_sizes import PlaneSizes
from conv_compiler.problem.slides import even_sizes
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import (
    DIRECT,
    DISTRIBUTIONS,
    PLANES,
    POINTWISE,
    REGISTER_TILES,
)
from conv_compiler.strategies.cpu.workgroup_shares import load_imbalance
from conv_compiler.strategies.cpu_tilings import PlaneTiling
from conv_compiler.targets.host import STACK_BYTES
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.processors import Processor


def tilings(
    problem: ConvProblem, processor: Processor, instruction: str = ""
) -> Iterator[tuple[float, PlaneTiling]]:
    """Register tiles with the cycles of all cores, each with the best of its distributions."""
    sizes, (_, results) = sizes_of(problem), channels(problem)
    lanes = row_lanes(problem, processor)
    first = PlaneSizes(
        rows=1, vectors=1, lanes=lanes, rows_share=1, planes_share=1, instruction=instruction,
        **sizes,
    )  # fmt: skip
    row, column = first.slides
    vectors_of_row = -(-column.outs // lanes)
    tried = PLANES.tried_rows if first.is_depthwise else PLANES.tried_block_rows
    for rows, vectors in product(tried, PLANES.tried_tile_registers):
        if vectors > vectors_of_row or rows > row.outs:
            continue
        most = _most_channels(first, processor.unit.registers, rows, vectors)
        fitting = [block for block in divisors(results) if block <= most]
        for block in fitting[-PLANES.tried_sizes :]:
            found = []
            for shares in _distributions(first, processor.cores, block):
                rows_share, planes_share, channel_shares = shares
                one = PlaneTiling(
                    rows=min(rows, rows_share),
                    vectors=vectors,
                    lanes=lanes,
                    rows_share=rows_share,
                    planes_share=planes_share,
                    block=block,
                    channel_shares=channel_shares,
                    instruction=instruction,
                )
                options = PlaneSizes(**vars(one), **sizes)
                if options.copied_elements * problem.accumulator_type.bytes > STACK_BYTES:
                    continue
                number = _workgroups(first, shares)
                whole = _workgroup(problem, options) * number
                whole *= 1 + load_imbalance(number, processor.cores)
                found.append((whole, planes_share, one))
            if found:
                cycles, _, one = min(found, key=lambda entry: entry[:2])
                yield cycles, one


def row_lanes(problem: ConvProblem, processor: Processor) -> int:
    """Pixels of a vector: fewer than a register has where a row is shorter."""
    width = (problem.out_image if problem.direction == "fwd" else problem.image)[-1]
    lanes = processor.unit.lanes * 4 // problem.accumulator_type.bytes
    while lanes // 2 >= max(width, PLANES.least_lane_pixels):
        lanes //= 2
    return lanes


def _most_channels(sizes: PlaneSizes, registers: int, rows: int, vectors: int) -> int:
    """Result channels of a register tile of so many rows by vectors; none where these are too
    many."""
    if sizes.is_depthwise:
        return int(rows * vectors <= registers // 2)
    held = len(sizes.tile_rows(rows)) if rows > 1 else 1
    return (registers - 1 - held * vectors) // (rows * vectors)


def _distributions(sizes: PlaneSizes, cores: int, block: int) -> Iterator[tuple[int, int, int]]:
    """Rows, planes and shares of channels of workgroups that are enough for all cores."""
    height, planes = sizes.slides[0].outs, sizes.batch * sizes.groups
    blocks = sizes.results // block
    wanted = min(DISTRIBUTIONS.core_workgroups * cores, planes * height * blocks)
    for shares in product(divisors(height), divisors(planes), divisors(blocks)):
        rows_share, planes_share, channel_shares = shares
        if planes_share > 1 and (rows_share < height or channel_shares > 1):
            continue
        number = _workgroups(sizes, shares)
        if wanted <= number <= max(DIRECT.most_core_workgroups * cores, planes * height):
            yield shares


def _workgroups(sizes: PlaneSizes, shares: tuple[int, int, int]) -> int:
    rows_share, planes_share, channel_shares = shares
    planes = sizes.batch * sizes.groups // planes_share
    return planes * (sizes.slides[0].outs // rows_share) * channel_shares


def _workgroup(problem: ConvProblem, options: PlaneSizes) -> float:
    """Cycles of a workgroup."""
    _, column = options.slides
    vectors = -(-column.outs // options.lanes)
    pieces = len(options.phases) * -(-column.size // (column.step * options.copied_lanes))
    copy = options.steps * options.copied_rows * pieces * PLANES.copy_cycles * options.factors
    products = 0.0
    for rows, count in even_sizes(options.rows_share, options.rows):
        for size, number in even_sizes(vectors, options.vectors):
            if count and number:
                products += count * number * (_tile(options, rows, size) + DIRECT.tile_cycles)
    moved = options.copied_rows * column.size * problem.data_type.bytes * options.sources
    stored = options.rows_share * column.outs * options.channels * problem.result_type.bytes
    plane = copy + products * (options.channels // options.block)
    plane += (moved + stored) / LINE_BYTES * DIRECT.near_line_cycles
    return options.planes_share * (plane + PLANES.plane_cycles) + DIRECT.workgroup_cycles


def _tile(options: PlaneSizes, rows: int, vectors: int) -> float:
    """Cycles of a register tile."""
    costs = REGISTER_TILES
    columns = len(options.reads(1))
    taps = len(options.reads(0)) * columns
    sums = options.block * rows * vectors
    loads = len(options.tile_rows(rows)) * columns * vectors
    if options.is_depthwise:
        step = max(
            sums * taps / costs.started_fma_instructions,
            (loads + vectors * taps) / costs.started_load_instructions,
        )
        return step + sums
    parts = (
        sums * taps / costs.started_fma_instructions,
        options.block * taps / costs.started_broadcast_instructions
        + loads / costs.started_load_instructions,
    )
    most = max(parts)
    step = max(most, taps * costs.fma_latency_cycles) + DIRECT.shown_share * (sum(parts) - most)
    written = options.block * rows * PLANES.written_row_cycles
    return options.steps * step + sums * POINTWISE.store_cycles + written
