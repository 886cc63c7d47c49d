# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long kernels of wave groups take for forward passes and data gradients."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.problem.slides import slides, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.gpu.cost_constants import WARP_GROUPS
from conv_compiler.strategies.gpu.wgmma_gemm_cost import (
    FLOAT,
    GIGA,
    resident,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import WarpGroupTiling
    from conv_compiler.targets import Target


class Shape(NamedTuple):
    """A problem as its kernel sees it: rows of a phase, and the gemm_k of each phase."""

    rows: int
    depths: tuple[int, ...]


@lru_cache(maxsize=1024)
def shape_of(problem: ConvProblem) -> Shape:
    """The shape of a forward pass or data gradient."""
    axes = slides(spaced(problem), problem.direction)
    sources, _ = channels(problem)
    taps = itertools.product(*([len(reads) for reads in axis.window] for axis in axes))
    units = math.prod(axis.units for axis in axes)
    return Shape(problem.n * units, tuple(math.prod(one) * sources for one in taps))


def workgroups(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Those of one part."""
    m, n, _ = tiling.workgroup
    shape, (_, results) = shape_of(problem), channels(problem)
    return -(-shape.rows // m) * -(-results // n) * len(shape.depths) * problem.g


def k_tiles(problem: ConvProblem, tiling: WarpGroupTiling) -> int:
    """Tiles of gemm_k of the phase that has most."""
    return -(-max(shape_of(problem).depths) // tiling.workgroup[2])


def predict(problem: ConvProblem, target: Target, tiling: WarpGroupTiling, split_k: int) -> float:
    """Seconds."""
    chip = target.clock_ghz * GIGA
    m, n, k = tiling.workgroup
    grid = workgroups(problem, tiling) * split_k
    together = resident(target, tiling)
    iterations = sum(-(-one // k) for one in shape_of(problem).depths) / len(
        shape_of(problem).depths
    )
    iterations /= split_k
    busy = m * n * k / WARP_GROUPS.cycle_products
    rounds = max(1, grid / target.compute_units / together)
    cycles = rounds * (
        580
        + iterations * max(together * busy, 450)
        + together * m * n * FLOAT / WARP_GROUPS.store_cycle_bytes
    )
    return (2000 + cycles) / chip + (2e-6 if split_k > 1 else 0)
