# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How threads of `depthwise_pixels` may multiply, and what that takes.

The ways are those of `passes/depthwise_parts/products.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.weight_steps import channels, pieces, weight_steps
from conv_compiler.strategies.gpu.cost_constants import PIXELS
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.targets.compute import for_target

if TYPE_CHECKING:
    from conv_compiler.problem.canonical import EquivalentWgrad
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import PixelTiling
    from conv_compiler.targets import Target
    from conv_compiler.targets.mma import Mma

# Rows of its column that a lane gets of a matrix instruction.
ROWS = 4


class Shape(NamedTuple):
    """Of a product: adjacent lanes with the same channels and strips of their own, and lanes that
    have the channels of a group between them."""

    strips: int = 1
    parts: int = 1


SHAPES = MappingProxyType(
    {"fma": Shape(), "dot": Shape(), "blocks": Shape(strips=4), "tiles": Shape(strips=16, parts=4)}
)


class Way(NamedTuple):
    """A product, and its matrix instruction; None where it has none."""

    product: str
    mma: Mma | None = None


@lru_cache(maxsize=1024)
def ways(wgrad: EquivalentWgrad, target: Target) -> tuple[Way, ...]:
    """The products that the channels of a problem's groups fit, without those that another one
    beats: matrix instructions, or else vector code.

    A matrix instruction must not take for 0 what vector code multiplies: denormals of the type.
    """
    problem, dtype = wgrad.of, wgrad.operand_dtypes[0]
    sources, results = channels(problem)
    rows = [("blocks", row) for row in target.blocks]
    if target.blocks:
        rows += [("tiles", row) for row in target.mma_for(dtype) if row.m == SHAPES["tiles"].strips]
    found = tuple(
        Way(product, row)
        for product, row in rows
        if row.operands == (dtype, dtype)
        and row.joined == 1
        and sources % row.k == results % row.m == 0
        and for_target(problem, target, row.name) == problem
    )
    if found:
        return found
    dots = target.isa.dots if target.isa else ()
    is_even = sources % (DWORD // DTYPES[dtype].bytes) == 0
    return (Way("dot" if dtype in dots and is_even else "fma"),)


def way_of(target: Target, tiling: PixelTiling) -> Way:
    """The product of a tiling."""
    rows = (*target.blocks, *target.mma)
    return Way(tiling.product, next((row for row in rows if row.name == tiling.mma), None))


class Lanes(NamedTuple):
    """What a thread has of the channels: source channels of a pixel, groups, and source and result
    channels of each of them."""

    read: int
    groups: int
    sources: int
    results: int


def lanes_of(problem: ConvProblem, product: str, vector: int) -> Lanes:
    """The channels of a thread with `vector` result channels."""
    sources, results = channels(problem)
    groups, of_group = max(1, vector // results), sources // SHAPES[product].parts
    return Lanes(groups * of_group, groups, of_group, min(vector, results))


def vectors(problem: ConvProblem, way: Way, sizes: tuple[int, ...]) -> list[int]:
    """Result channels that a thread may have: of whole groups, or an even part of one's."""
    _, results = channels(problem)
    parts = SHAPES[way.product].parts
    if parts > 1:
        most = results // parts
        return [size for size in range(most, 0, -ROWS) if most % size == 0]
    fitting = []
    for size in sizes:
        even = size % results == 0 or results % size == 0
        whole = way.mma is None or min(size, results) % ROWS == 0
        if even and whole and problem.g * results % size == 0:
            fitting.append(size)
    return fitting


class Work(NamedTuple):
    """What a thread executes and keeps for its channels.

    `valu` and `matrix` are instructions of a pixel with a tap, `rows` the vector products that this
    is; `prepare` instructions bring a loaded pixel into the form that is multiplied, which takes
    `registers` more. The filter has `weights` registers, and `loads` read it.
    """

    valu: float
    matrix: int
    rows: float
    prepare: int
    registers: int
    weights: int
    loads: int


@lru_cache(maxsize=16384)
def work(wgrad: EquivalentWgrad, way: Way, vector: int, is_packed: bool) -> Work:
    """The work of a product; `is_packed` tells whether instructions have two f32 products."""
    problem, dtype = wgrad.of, DTYPES[wgrad.operand_dtypes[0]]
    lanes, taps = lanes_of(problem, way.product, vector), math.prod(problem.filter)
    loads = _filter_loads(problem, way.product, lanes)
    multiplied = channels(problem)[0] * vector
    if way.product == "fma":
        pairs = is_packed and not dtype.is_integer and vector > 1
        valu = multiplied / 2 if pairs else multiplied * (1 + dtype.is_integer)
        prepare = 0 if dtype.bytes == DWORD else lanes.read
        return Work(valu, 0, lanes.sources, prepare, lanes.read, taps * multiplied, loads)
    prepare = lanes.read * (wgrad.operand_dtypes[0] != problem.dtype)
    pixel = _up(lanes.read * dtype.bytes) if prepare else 0
    if way.mma is None:
        dots = multiplied * dtype.bytes // DWORD
        held = _up(taps * multiplied * dtype.bytes)
        return Work(dots, 0, dots / ROWS, prepare, pixel, held, loads)
    count = vector // ROWS * channels(problem)[0] // way.mma.k
    held = taps * vector // ROWS * lanes.sources * dtype.bytes // DWORD
    return Work(0, count, count, prepare, pixel, held, loads)


def _up(size: int) -> int:
    return -(-size // DWORD)


def _filter_loads(problem: ConvProblem, product: str, lanes: Lanes) -> int:
    """Instructions that load a thread's weights."""
    steps, (_, results) = weight_steps(problem), channels(problem)
    shape = SHAPES[product]
    aligned = lanes.groups * steps.group
    if lanes.results < results:
        aligned = math.gcd(steps.group, lanes.results * steps.result)
    if shape.parts > 1:
        aligned = math.gcd(steps.group, lanes.sources * steps.source)
    if shape.strips > 1:
        aligned = math.gcd(aligned, steps.result)
    distances = (
        group * steps.group + row * steps.result + tap * steps.tap + c * steps.source
        for group in range(lanes.groups)
        for row in range(0, lanes.results, ROWS if shape.strips > 1 else 1)
        for tap in range(math.prod(problem.filter))
        for c in range(lanes.sources)
    )
    size = problem.data_type.bytes
    loads, run, end = 0, 0, -1
    for distance, count in pieces(distances, aligned, PIXELS.filter_load_bytes // size):
        if distance != end or count * size < DWORD:  # LLVM merges adjacent loads of whole dwords
            loads, run = loads + -(-run // PIXELS.filter_load_bytes), 0
        run, end = run + count * size, distance + count
    return loads + -(-run // PIXELS.filter_load_bytes)
