# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategy `depthwise_pixels`: forward passes and data gradients of groups of few channels.

Such a problem executes few operations for the bytes that it moves. So the kernel
(`passes/depthwise_pixels.py`) reads each operand about once, and keeps filter and sums in
registers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import BUFFER_BYTES
from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.convolution_sizes import sizes_of
from conv_compiler.problem.slides import slides, spaced
from conv_compiler.strategies.gpu.cost_constants import PIXELS_SEARCH
from conv_compiler.strategies.gpu.depthwise_pixels_cost import blocks, predict, vgprs
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.pixel_products import (
    vectors,
    way_of,
    ways,
    work,
)
from conv_compiler.strategies.gpu.pixel_threads import with_threads
from conv_compiler.strategies.kind import Lowering, OnePart, Promises
from conv_compiler.strategies.pipeline_file import behind_contraction, read_pipeline
from conv_compiler.strategies.schedule import CompilationInfo, Schedule
from conv_compiler.strategies.strategy import PixelTiling, Strategy

if TYPE_CHECKING:
    from conv_compiler.passes import Pass
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets import Target

DTYPES = ("f16", "bf16", "f32", "i8")
# Registers that an instruction of any chip can name.
MOST_VGPRS = 256


def small_groups(wgrad: ConvProblem, target: Target) -> ConvProblem | None:
    """The problem that a kernel of this kind computes; None where it fits none."""
    if not isinstance(wgrad, EquivalentWgrad) or misfit(wgrad, target):
        return None
    return wgrad.of


def misfit(wgrad: ConvProblem, target: Target) -> str:
    """The rule that a problem breaks; empty where it fits.

    Several groups of a few channels are adjacent in memory, in a type that vector units multiply.
    Elements are counted in 32 bits, and on AMD chips read by buffer instructions.
    """
    if not isinstance(wgrad, EquivalentWgrad):
        return "it computes fwd and bwd_data"
    problem, search = wgrad.of, PIXELS_SEARCH
    row = problem.layout_row.grouped
    largest = max(math.prod(problem.input_shape), math.prod(problem.output_shape))
    bytes_most = max(problem.data_type.bytes, problem.result_type.bytes, problem.d_type.bytes)
    types = set(wgrad.operand_dtypes)
    phases = 1 if problem.direction == "fwd" else math.prod(problem.stride)
    # Vector code would keep the filters of a group of 32 channels in more registers than there are.
    by_matrix = any(way.mma for way in ways(wgrad, target))
    most = search.most_matrix_group_channels if by_matrix else search.most_group_channels
    rules = {
        "it is for GPUs": target.is_gpu,
        "it takes several groups": problem.g > 1,
        f"groups have {most} channels at most": max(problem.k, problem.c) <= most,
        "channels lie last in its layouts": (row.input, row.output) == ("N*GC", "N*GK"),
        f"its types are {', '.join(DTYPES)}": problem.terms is None
        and len(types) == 1
        and types <= set(DTYPES),
        f"its tensors are below {BUFFER_BYTES} bytes": largest * bytes_most < BUFFER_BYTES,
        f"its filters have {search.most_taps} taps at most": math.prod(problem.filter)
        <= search.most_taps,
        f"its strides have {search.most_unit_pixels} phases at most": phases
        <= search.most_unit_pixels,
    }
    if broken := next((rule for rule, holds in rules.items() if not holds), ""):
        return broken
    # Of zeros alone no matrix instruction would be left. Taps are listed, so this comes last.
    meets = all(one.slide(problem.direction).meets for one in spaced(problem))
    return "" if meets else "its windows meet the image"


def _near(value: int, most: int) -> list[int]:
    """Sizes up to `most` that cut an extent evenly or nearly so, largest first."""
    found = dict.fromkeys(
        -(-value // parts) for parts in range(1, value + 1) if value <= most * parts
    )
    return list(found)


def _strips(
    problem: ConvProblem, target: Target, products: float
) -> Iterator[tuple[int, int, int]]:
    """Columns, rows and unrolled rows of a thread's strip, in units.

    `products` are the vector products of a pixel with a tap. NVIDIA's chips get a loop where there
    can be one: code that each thread runs once waits for its instructions (docs/benchmarks.md).
    """
    _, row, column = slides(spaced(problem), problem.direction)
    columns = _near(column.units, PIXELS_SEARCH.most_columns)
    rows = _near(row.units, PIXELS_SEARCH.most_rows)
    for wide, high in itertools.product(columns, rows):
        steady = high - row.later
        if wide * high * row.phases * column.phases > PIXELS_SEARCH.most_pixels:
            continue
        unrolled = (high + row.later) * wide * row.phases * column.phases * products
        few = unrolled * math.prod(problem.filter) <= PIXELS_SEARCH.most_products
        loops = [n for n in (1, 2) if steady > n and steady % n == 0]
        if not loops or (few and target.backend != "cuda"):
            yield wide, high, high
        for unroll in loops:
            yield wide, high, unroll


def strips(wgrad: EquivalentWgrad, target: Target) -> Iterator[PixelTiling]:
    """Every strip whose filter, sums and source row the registers hold, with one thread."""
    problem = wgrad.of
    registers = min(MOST_VGPRS, target.vgprs_per_lane)
    for way in ways(wgrad, target):
        for vector in vectors(problem, way, PIXELS_SEARCH.thread_channels):
            if vector * problem.data_type.bytes > 4 * DWORD:
                continue
            products = work(wgrad, way, vector, False).rows
            for columns, rows, unroll in _strips(problem, target, products):
                strip = PixelTiling(
                    vector=vector, columns=columns, rows=rows, unroll=unroll, lanes=1, across=1,
                    down=1, images=1, threads=1, product=way.product,
                    mma=way.mma.name if way.mma else "",
                )  # fmt: skip
                if vgprs(wgrad, target, strip) <= registers:
                    yield strip


def tilings(wgrad: EquivalentWgrad, target: Target) -> Iterator[PixelTiling]:
    """Every strip with each of its best layouts of threads."""
    for strip in strips(wgrad, target):
        yield from with_threads(wgrad.of, target, strip)


def candidates(
    wgrad: ConvProblem, target: Target, tile: tuple[int, ...] = ()
) -> tuple[Strategy, ...]:
    """Tilings, fastest first; those with the strip `tile`, where one is given.

    All strips get a first look with their best layout of threads, the fastest are modelled with
    several.
    """
    problem = small_groups(wgrad, target)
    if problem is None:
        return ()
    assert isinstance(wgrad, EquivalentWgrad)

    def seconds(tiling: PixelTiling) -> tuple[float, ...]:
        # Of equally fast layouts the one whose threads lie nearest to one another in memory.
        near = (-tiling.lanes * tiling.vector, -tiling.across, -tiling.down)
        return predict(wgrad, target, tiling), *near

    first = [
        next(with_threads(problem, target, strip))
        for strip in strips(wgrad, target)
        if tile in ((), (strip.columns, strip.rows, strip.vector))
    ]
    best = sorted(first, key=seconds)[: PIXELS_SEARCH.modelled_tilings]
    every = dict.fromkeys(one for strip in best for one in with_threads(problem, target, strip))
    return tuple(
        Strategy(name="depthwise_pixels", tiling=tiling, split_k=1)
        for tiling in sorted(every, key=seconds)[: PIXELS_SEARCH.most_tilings]
    )


def _tiling(one: Strategy) -> PixelTiling:
    assert isinstance(one.tiling, PixelTiling)
    return one.tiling


def passes(wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[Pass, ...]:
    """The payload as a kernel of vectors."""
    from conv_compiler.passes.depthwise_pixels import DepthwisePixels

    assert isinstance(wgrad, EquivalentWgrad)
    problem, tiling = wgrad.of, _tiling(one)
    numbers = {name: value for name, value in asdict(tiling).items() if name != "mma"}
    mma = way_of(target, tiling).mma
    return (
        DepthwisePixels(
            **numbers,
            depth=mma.k if mma else 0,
            **sizes_of(problem),
        ),
    )


def schedule(target: Target, one: Strategy) -> Schedule:
    """Pipeline of a kernel of vectors."""
    pipeline = read_pipeline("gpu_depthwise", {target.backend: True})
    info = CompilationInfo(
        lowering_config="#iree_gpu.lowering_config<{}>",
        pipeline=pipeline.steps,
        workgroup_size=(_tiling(one).threads, 1, 1),
        subgroup_size=target.subgroup_size,
    )
    return Schedule(roles={"contraction": info}, behind=behind_contraction(pipeline))


@dataclass(frozen=True, kw_only=True)
class DepthwisePixels(OnePart):
    """A kernel that a pass writes (`passes/depthwise_pixels.py`).

    One part: a thread has all taps of a result pixel.
    """

    normalise: str = "depthwise_pixels"
    is_modelled: bool = True

    def candidates(
        self, wgrad: ConvProblem, target: Target, split_k: int, tile: tuple[int, ...]
    ) -> tuple[Strategy, ...]:
        """Strips of result pixels that fit, fastest first."""
        return candidates(wgrad, target, tile)

    def lower(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Lowering:
        """The pass that writes the kernel, and the pipeline behind it."""
        return Lowering(passes=passes(wgrad, target, one), schedule=schedule(target, one))

    def cost(self, wgrad: ConvProblem, target: Target, one: Strategy) -> float:
        """Seconds by the performance model."""
        return predict(wgrad, target, _tiling(one))

    def promises(self, wgrad: ConvProblem, target: Target, one: Strategy) -> Promises:
        """The matrix instruction, where it has one."""
        mma = way_of(target, _tiling(one)).mma
        return Promises(instruction=mma.instruction if mma else "")

    def refusal(self, wgrad: ConvProblem, target: Target) -> str:
        """The rule that the problem breaks, or that registers are too few."""
        if why := misfit(wgrad, target):
            return why
        fits = isinstance(wgrad, EquivalentWgrad) and next(strips(wgrad, target), None)
        return "" if fits else "registers do not hold the weights of a thread"

    def occupancy(self, wgrad: ConvProblem, target: Target, one: Strategy) -> tuple[int, int]:
        """(workgroups, iterations of the main loop) of one part."""
        assert isinstance(wgrad, EquivalentWgrad)
        return blocks(wgrad.of, _tiling(one)), 1


DEPTHWISE_PIXELS = DepthwisePixels(
    name="depthwise_pixels",
    description="forward and data gradient of groups of few channels, sums in registers",
    tile="columns x rows x channels of a thread's strip of result pixels",
    backends=("rocm", "cuda"),
)
