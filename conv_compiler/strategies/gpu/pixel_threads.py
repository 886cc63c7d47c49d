# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the threads of a workgroup of `depthwise_pixels` lie: along channels, strips and images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.slides import slides, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import PIXELS_SEARCH
from conv_compiler.strategies.gpu.pixel_products import SHAPES, Shape

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import PixelTiling
    from conv_compiler.targets import Target


class _Layout(NamedTuple):
    """How the threads of a workgroup lie, and how large a share of all threads has work."""

    busy: float
    threads: int
    lanes: int
    across: int
    down: int
    images: int


@lru_cache(maxsize=4096)
def _layouts(
    vectors: int, least: int, strips: tuple[int, int, int], subgroup: int, shape: Shape
) -> tuple[_Layout, ...]:
    """The best layouts: few threads without work, then small workgroups.

    `vectors` lie along the channels, `least` of them at least side by side; `strips` are images,
    strips down and strips across. `shape` says which threads are adjacent lanes.
    """
    most = PIXELS_SEARCH.most_threads
    most_lanes = most // shape.strips
    shares = [
        n
        for n in range(1, min(vectors, most_lanes) + 1)
        if vectors % n == n % shape.parts == 0 and n >= least
    ]
    lanes = shares[:1] or [_rounded_up(-(-vectors // -(-vectors // most_lanes)), shape.parts)]
    found = []
    for lane, across, down, image in itertools.product(
        dict.fromkeys((*lanes, *shares[-1:])), *(_powers(n, most) for n in reversed(strips))
    ):
        used = lane * across * down * image
        taken_by = -(-across * down * image // shape.strips) * shape.strips * lane
        if taken_by > most:
            continue
        threads = -(-taken_by // subgroup) * subgroup
        taken = math.prod(
            -(-extent // part) * part
            for extent, part in zip(strips, (image, down, across), strict=True)
        )
        groups = -(-vectors // lane) * lane
        busy = vectors * math.prod(strips) * used / (taken * groups * threads)
        found.append(_Layout(busy, threads, lane, across, down, image))
    found.sort(key=lambda one: (-one.busy, one.threads, -one.lanes, -one.across, -one.down))
    return tuple(found[: PIXELS_SEARCH.most_layout_tilings])


def _rounded_up(value: int, to: int) -> int:
    return -(-value // to) * to


def _powers(extent: int, most: int) -> list[int]:
    """How many strips of an axis a workgroup may have: divisors, powers of two, and all."""
    return [
        n
        for n in range(1, min(extent, most) + 1)
        if extent % n == 0 or n & (n - 1) == 0 or n == extent
    ]


def with_threads(
    problem: ConvProblem, target: Target, tiling: PixelTiling
) -> Iterator[PixelTiling]:
    """The tiling with each of the best layouts of its threads."""
    _, row, column = slides(spaced(problem), problem.direction)
    vectors = problem.g * channels(problem)[1] // tiling.vector
    bytes_of = tiling.vector * problem.data_type.bytes
    strips = (problem.n, -(-row.units // tiling.rows), -(-column.units // tiling.columns))
    least = min(vectors, max(1, PIXELS_SEARCH.least_line_bytes // bytes_of))
    shape = SHAPES[tiling.product]
    for layout in _layouts(vectors, least, strips, target.subgroup_size, shape):
        _, threads, lanes, across, down, images = layout
        yield replace(tiling, threads=threads, lanes=lanes, across=across, down=down, images=images)
