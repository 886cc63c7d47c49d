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
from conv_compiler.problem.slides import Slide, slides, spaced
from conv_compiler.strategies.gpu.cost_constants import PIXELS, PIXELS_SLACK
from conv_compiler.strategies.gpu.lds_copies import DWORD

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import PixelTiling
    from conv_compiler.targets import Target


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
        * -(-problem.g // (tiling.vector * tiling.lanes))
    )


def vgprs(problem: ConvProblem, tiling: PixelTiling) -> int:
    """Registers of a thread, about: the filter, open sums, and a row of the source."""
    shape = _shape(problem, tiling.columns)
    deepest = max(map(len, shape.depth.window))
    open_sums = min(shape.row.later + 1, tiling.rows) * shape.width
    dwords = -(-tiling.vector * problem.data_type.bytes // DWORD)
    vectors = math.prod(problem.filter) + open_sums + shape.reach * deepest
    row = shape.reach * deepest * dwords
    if is_looped(shape, tiling):  # what the next iteration multiplies
        row += row * tiling.unroll * len({one.row for one in shape.row.met()})
    return vectors * tiling.vector + row + PIXELS.other_registers


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
    dwords = -(-vector * size // DWORD)
    out_size = problem.result_type.bytes
    out_dwords = -(-vector * out_size // DWORD)
    taps = math.prod(problem.filter)
    is_integer = problem.data_type.is_integer
    packed = chip.valu_cycles == 4 and not is_integer and vector > 1
    product = vector / 2 if packed else vector * (1 + is_integer)
    convert = 0 if size == DWORD else vector
    steps = tiling.rows + shape.row.later
    used_rows = len({one.row for one in shape.row.met()})
    source_rows = steps * used_rows * shape.sheets
    loads = source_rows * shape.reach
    pixels = tiling.rows * shape.width * shape.depth.phases
    rounded = vector if out_size != DWORD else 0
    moves = 0.0
    if is_looped(shape, tiling):
        iterations = (tiling.rows - shape.row.later) // tiling.unroll
        moves = iterations * shape.row.later * shape.width * vector / (2 if packed else 1)
    valu = (
        loads * (convert + PIXELS.load_instructions)
        + source_rows * PIXELS.row_instructions
        + shape.products * tiling.rows * product
        + pixels * (rounded + PIXELS.store_instructions)
        + moves
        + taps * vector
        + PIXELS.start_instructions
    )
    # Lanes have their filters one behind the other: each load of them touches every line.
    filter_loads = -(-taps * vector * size // PIXELS.filter_load_bytes)
    filter_lines = filter_loads * lanes * min(PIXELS.line_bytes, taps * vector * size)
    bytes_moved = lanes * vector * (loads * size + pixels * out_size)
    counts = KernelCounts(
        iterations=0,
        outside=counted(
            valu=valu,
            valu_slots=valu,
            vector_flops=2 * shape.products * tiling.rows * vector * lanes,
            loads=loads + filter_loads,
            load_dwords=loads * dwords + taps * vector * size / DWORD,
            load_bytes=loads * vector * size * lanes,
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
        vgprs=vgprs(problem, tiling),
        read_bytes=problem.bytes - math.prod(problem.result_shape) * out_size,
        written_bytes=math.prod(problem.result_shape) * out_size,
    )
    share = PIXELS.step_latency_share
    if not is_looped(shape, tiling):
        row = shape.reach * max(map(len, shape.depth.window)) * dwords
        ahead = max(1, (PIXELS.ahead_registers - vgprs(problem, tiling)) // max(1, row))
        share = max(share, PIXELS.late_step_waited_loads / ahead)
    waits = PIXELS.start_waited_loads + steps * shape.depth.phases * share
    pipes = max(unit_cycles(counts.outside, 1, launch, chip).values())
    main = estimate(counts, launch, target, chip, alone=pipes + waits * chip.load_cycles)
    return main.seconds + PIXELS_SLACK.serial_share * main.unit_seconds
