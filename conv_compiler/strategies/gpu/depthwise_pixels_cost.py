# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a tiling of `depthwise_pixels` needs: registers, counts and seconds."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import KernelCounts, counted
from conv_compiler.model.estimate import estimate, unit_cycles
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.slides import Slide, slides, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import (
    CUDA_PIXEL_WAITS,
    PIXEL_WAITS,
    PIXELS,
    PIXELS_SLACK,
)
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.pixel_products import SHAPES, lanes_of, way_of, work

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import PixelTiling
    from conv_compiler.targets import Target

WAITS = {"rocm": PIXEL_WAITS, "cuda": CUDA_PIXEL_WAITS}


class Shape(NamedTuple):
    """What a thread of a tiling does, in vectors: columns of a source row, sums of a unit of rows,
    products of all taps with a strip."""

    depth: Slide
    row: Slide
    column: Slide
    reach: int
    width: int
    products: int
    sheets: int


@lru_cache(maxsize=16384)
def _shape(problem: ConvProblem, columns: int) -> Shape:
    depth, row, column = slides(spaced(problem), problem.direction)
    rows = sum(map(len, row.window))
    across = sum(map(len, column.window))
    sheets = sum(map(len, depth.window))
    return Shape(
        depth=depth,
        row=row,
        column=column,
        reach=len(column.reach(columns)),
        width=columns * column.phases * row.phases,
        products=rows * across * columns * sheets,
        sheets=sheets,
    )


def blocks(problem: ConvProblem, tiling: PixelTiling) -> int:
    """Workgroups."""
    shape = _shape(problem, tiling.columns)
    return (
        -(-problem.n // tiling.images)
        * shape.depth.units
        * -(-shape.row.units // (tiling.rows * tiling.down))
        * -(-shape.column.units // (tiling.columns * tiling.across))
        * -(-problem.g * channels(problem)[1] // (tiling.vector * tiling.lanes))
    )


def vgprs(wgrad: EquivalentWgrad, target: Target, tiling: PixelTiling) -> int:
    """Registers of a thread, about: the filter, open sums, and a row of the source."""
    problem = wgrad.of
    shape = _shape(problem, tiling.columns)
    needs = work(wgrad, way_of(target, tiling), tiling.vector, False)
    deepest = max(map(len, shape.depth.window))
    open_sums = min(shape.row.later + 1, tiling.rows) * shape.width * tiling.vector
    read = lanes_of(problem, tiling.product, tiling.vector).read
    dwords = -(-read * problem.data_type.bytes // DWORD)
    row = shape.reach * deepest * dwords
    if is_looped(shape, tiling):  # what the next iteration multiplies
        row += row * tiling.unroll * len({one.row for one in shape.row.met()})
    prepared = shape.reach * deepest * needs.registers
    return needs.weights + open_sums + prepared + row + PIXELS.other_registers


def is_looped(shape: Shape, tiling: PixelTiling) -> bool:
    """Whether the steps that finish a unit are a loop."""
    return tiling.rows - shape.row.later > tiling.unroll


@lru_cache(maxsize=16384)
def predict(wgrad: ConvProblem, target: Target, tiling: PixelTiling) -> float:
    """Modelled seconds of a problem with a tiling."""
    assert isinstance(wgrad, EquivalentWgrad)
    problem, chip = wgrad.of, rank_facts(target)
    shape = _shape(problem, tiling.columns)
    lanes, size, vector = target.subgroup_size, problem.data_type.bytes, tiling.vector
    read = lanes_of(problem, tiling.product, vector).read
    dwords = -(-read * size // DWORD)
    out_size = problem.result_type.bytes
    out_dwords = -(-vector * out_size // DWORD)
    is_packed = chip.valu_cycles == 4
    is_paired = is_packed and vector > 1 and not DTYPES[wgrad.operand_dtypes[0]].is_integer
    way = way_of(target, tiling)
    needs = work(wgrad, way, vector, is_packed)
    steps = tiling.rows + shape.row.later
    used_rows = len({one.row for one in shape.row.met()})
    products = shape.products * tiling.rows
    source_rows = steps * used_rows * shape.sheets
    loads = source_rows * shape.reach
    pixels = tiling.rows * shape.width * shape.depth.phases
    rounded = vector if out_size != DWORD else 0
    moves = 0.0
    if is_looped(shape, tiling):
        iterations = (tiling.rows - shape.row.later) // tiling.unroll
        moves = iterations * shape.row.later * shape.width * vector / (2 if is_paired else 1)
    valu = (
        loads * (needs.prepare + PIXELS.load_instructions)
        + source_rows * PIXELS.row_instructions
        + products * needs.valu
        + pixels * (rounded + PIXELS.store_instructions)
        + moves
        + needs.weights
        + PIXELS.start_instructions
    )
    # Lanes have their filters one behind the other: each load of them touches every line. Those of
    # the same channels have a part of it each.
    sharing = SHAPES[tiling.product].strips
    filter_bytes = math.prod(problem.filter) * channels(problem)[0] * vector * size
    filter_lines = needs.loads * lanes / sharing * min(PIXELS.line_bytes, filter_bytes)
    bytes_moved = lanes * (loads * read + pixels * vector * out_size / size) * size
    instructions = products * needs.matrix
    flops = 2 * products * channels(problem)[0] * vector * lanes
    counts = KernelCounts(
        iterations=0,
        outside=counted(
            matrix=instructions,
            matrix_cycles=instructions * (way.mma.subgroup_cycles if way.mma else 0),
            matrix_flops=flops if way.mma else 0,
            valu=valu,
            valu_slots=valu,
            vector_flops=0 if way.mma else flops,
            loads=loads + needs.loads,
            load_dwords=loads * dwords + max(needs.loads, filter_bytes / sharing / DWORD),
            load_bytes=loads * read * size * lanes,
            stores=pixels,
            store_dwords=pixels * out_dwords,
            store_bytes=pixels * vector * out_size * lanes,
            line_bytes=bytes_moved + filter_lines,
        ),
        source="predicted",
    )
    waves = -(-tiling.threads // lanes)
    launch = Launch(
        workgroups=blocks(problem, tiling),
        waves=waves,
        vgprs=vgprs(wgrad, target, tiling),
        read_bytes=problem.bytes - math.prod(problem.result_shape) * out_size,
        written_bytes=math.prod(problem.result_shape) * out_size,
    )
    table = WAITS[target.backend]
    share = table.step_latency_share
    if not is_looped(shape, tiling):
        row = shape.reach * max(map(len, shape.depth.window)) * dwords
        ahead = max(1, (table.ahead_registers - vgprs(wgrad, target, tiling)) // max(1, row))
        share = max(share, table.late_step_waited_loads / ahead)
    waits = table.start_waited_loads + steps * shape.depth.phases * share
    pipes = max(unit_cycles(counts.outside, 1, launch, chip).values())
    main = estimate(counts, launch, target, chip, alone=pipes + waits * chip.load_cycles)
    return main.seconds + PIXELS_SLACK.serial_share * main.unit_seconds
