# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How threads of `depthwise_pixels` may multiply, and what that takes.

The ways are those of `passes/depthwise_parts/products.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.dtypes import DTYPES
from conv_compiler.problem.weight_steps import channels, pieces, weight_steps
from conv_compiler.strategies.gpu.lds_copies import DWORD
from conv_compiler.targets.compute import for_target

if TYPE_CHECKING:
    from conv_compiler.problem.canonical import EquivalentWgrad
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

# Rows, columns and source channels of a block of a matrix instruction, whose columns are lanes.
SIDE = 4
# Bytes of the widest load.
_LOAD_BYTES = 4 * DWORD


class Way(NamedTuple):
    """A product, and its matrix instruction in IREE's name; empty where it has none."""

    product: str
    mma: str = ""


@lru_cache(maxsize=1024)
def fastest_way(wgrad: EquivalentWgrad, target: Target) -> Way:
    """The fastest product that the channels of a problem's groups fit.

    Blocks must not take for 0 what vector code multiplies: denormals of the data type.
    """
    problem, dtype = wgrad.of, wgrad.operand_dtypes[0]
    sources, results = channels(problem)
    blocks = target.blocks_for(dtype)
    if (
        blocks
        and sources % SIDE == results % SIDE == 0
        and for_target(problem, target, blocks.name) == problem
    ):
        return Way("blocks", blocks.name)
    dots = target.isa.dots if target.isa else ()
    if dtype in dots and sources % (DWORD // DTYPES[dtype].bytes) == 0:
        return Way("dot")
    return Way("fma")


def strips_together(product: str) -> int:
    """Threads with the same channels and strips of their own that are adjacent lanes."""
    return SIDE if product == "blocks" else 1


class Lanes(NamedTuple):
    """What a thread has of the channels: source channels of a pixel, groups, and result channels of
    each of them."""

    read: int
    groups: int
    results: int


def lanes_of(problem: ConvProblem, vector: int) -> Lanes:
    """The channels of a thread with `vector` result channels."""
    sources, results = channels(problem)
    groups = max(1, vector // results)
    return Lanes(groups * sources, groups, min(vector, results))


def vectors(problem: ConvProblem, way: Way, sizes: tuple[int, ...]) -> list[int]:
    """Result channels that a thread may have: of whole groups, or an even part of one's."""
    _, results = channels(problem)
    whole = SIDE if way.product == "blocks" else 1
    fitting = []
    for size in sizes:
        lanes = lanes_of(problem, size)
        even = size % results == 0 or results % size == 0
        if even and problem.g * results % size == 0 and lanes.results % whole == 0:
            fitting.append(size)
    return fitting


class Work(NamedTuple):
    """What a thread executes and keeps for its channels.

    `valu` and `matrix` are instructions of a pixel with a tap, `rows` the vector products that this
    is; `prepare` instructions bring a loaded pixel into the form in which it takes `registers`.
    Its `weights` take as many registers, are read by `loads` and moved by as many instructions.
    """

    valu: float
    matrix: int
    rows: float
    prepare: int
    registers: int
    weights: int
    loads: int


@lru_cache(maxsize=16384)
def work(wgrad: EquivalentWgrad, product: str, vector: int, is_packed: bool) -> Work:
    """The work of a product; `is_packed` tells whether instructions have two f32 products."""
    problem, dtype = wgrad.of, DTYPES[wgrad.operand_dtypes[0]]
    sources, _ = channels(problem)
    lanes, taps = lanes_of(problem, vector), math.prod(problem.filter)
    multiplied = sources * vector
    converted = wgrad.operand_dtypes[0] != problem.dtype
    loads = _filter_loads(problem, product, lanes)
    if product == "blocks":
        blocks = multiplied // SIDE**2
        held = taps * blocks * SIDE * dtype.bytes // DWORD
        pixel = _up(lanes.read * dtype.bytes)
        return Work(0, blocks, blocks, lanes.read * converted, pixel, held, loads)
    if product == "dot":
        dots = multiplied * dtype.bytes // DWORD
        held = _up(taps * multiplied * dtype.bytes)
        pixel = _up(lanes.read * dtype.bytes)
        return Work(dots, 0, dots / SIDE, lanes.read * converted, pixel, held, loads)
    pairs = is_packed and not dtype.is_integer and vector > 1
    valu = multiplied / 2 if pairs else multiplied * (1 + dtype.is_integer)
    prepare = 0 if dtype.bytes == DWORD else lanes.read
    return Work(valu, 0, sources, prepare, lanes.read, taps * multiplied, loads)


def _up(size: int) -> int:
    return -(-size // DWORD)


def _filter_loads(problem: ConvProblem, product: str, lanes: Lanes) -> int:
    """Instructions that load a thread's weights."""
    steps, (sources, results) = weight_steps(problem), channels(problem)
    aligned = lanes.groups * steps.group
    if lanes.results < results:
        aligned = math.gcd(steps.group, lanes.results * steps.result)
    stride = strips_together(product)
    if stride > 1:
        aligned = math.gcd(aligned, steps.result)
    distances = (
        group * steps.group + row * steps.result + tap * steps.tap + c * steps.source
        for group in range(lanes.groups)
        for row in range(0, lanes.results, stride)
        for tap in range(math.prod(problem.filter))
        for c in range(sources)
    )
    return len(pieces(distances, aligned, _LOAD_BYTES // problem.data_type.bytes))
