# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward pass or data gradient as a kernel with copies to LDS sees it."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.slides import slides, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.wgmma_gemm_cost import piece_of, whole_channels

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


class Shape(NamedTuple):
    """A problem as its kernel sees it: rows of a phase, taps of each phase, channels that a tap
    sums up, columns, groups, and whether the source is read as it lies, once."""

    rows: int
    taps: tuple[int, ...]
    depth: int
    columns: int
    groups: int
    is_plain: bool

    def k_tiles(self, k: int) -> tuple[int, ...]:
        """Tiles of gemm_k of each phase."""
        return tuple(-(-taps * self.depth // k) for taps in self.taps)


@lru_cache(maxsize=4096)
def shape_of(problem: ConvProblem, merged: int = 1) -> Shape:
    """The shape of a forward pass or data gradient."""
    axes = slides(spaced(problem), problem.direction)
    sources, results = channels(problem)
    taps = itertools.product(*([len(reads) for reads in axis.window] for axis in axes))
    return Shape(
        rows=problem.n * math.prod(axis.units for axis in axes),
        taps=tuple(map(math.prod, taps)),
        depth=whole_channels(sources * merged, piece_of(problem)),
        columns=results * merged,
        groups=problem.g // merged,
        is_plain=all(axis.is_plain for axis in axes),
    )
