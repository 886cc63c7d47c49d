# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of depthwise tilings on NVIDIA chips: powers of what a kernel does, fitted to times.

The rows of facts of these chips know no latencies, so the performance model cannot tell how many
threads hide them. The product of powers is no time: it orders the kernels of one problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import resident
from conv_compiler.strategies.gpu.cost_constants import DEPTHWISE_POWERS, DepthwisePowers
from conv_compiler.strategies.gpu.depthwise_cost import (
    DepthwiseTerms,
    blocks,
    launch_of,
    strip_rounds,
)

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import DepthwiseTiling
    from conv_compiler.targets import Target


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Logarithms of the numbers whose powers are multiplied.

    `loads` are load instructions of all threads of a unit. Of a thread are `iterations`, one after
    another, `sums` that it keeps, and output `rows` of an iteration. `channels` are adjacent ones
    of a workgroup. `rounds` is how often the units are filled. `idle` is how many times as many
    threads would hide the latency of a unit's loads, at least 1.
    """

    loads: float
    iterations: float
    sums: float
    rows: float
    channels: float
    rounds: float
    idle: float


TERMS = fields(Terms)


def terms(
    problem: ConvProblem,
    target: Target,
    tiling: DepthwiseTiling,
    split_k: int,
    powers: DepthwisePowers = DEPTHWISE_POWERS,
) -> Terms:
    """The terms of a tiling with a split-K factor."""
    chip, one = rank_facts(target), DepthwiseTerms(problem, target, tiling)
    launch = launch_of(problem, target, tiling, split_k)
    rounds = -(-strip_rounds(problem, tiling) // split_k)
    threads = tiling.threads * split_k * blocks(problem, tiling) / chip.units
    iterations = rounds * tiling.rows // tiling.unroll
    loads = iterations * one.iteration().loads + one.outside(rounds).loads
    filled = -(-launch.workgroups // (chip.units * resident(launch, chip)))
    return Terms(
        loads=math.log(loads * threads),
        iterations=math.log(iterations),
        sums=math.log(math.prod(problem.filter) * tiling.vector),
        rows=math.log(tiling.unroll),
        channels=math.log(tiling.lanes * tiling.vector),
        rounds=math.log(filled),
        idle=math.log(max(1.0, powers.unit_threads / threads)),
    )


def order(problem: ConvProblem, target: Target, tiling: DepthwiseTiling, split_k: int) -> float:
    """A number that is least for the kernel to take first: the logarithm of its powers' product."""
    found = terms(problem, target, tiling, split_k)
    return float(sum(power_of(one.name) * getattr(found, one.name) for one in TERMS))


def power_of(term: str) -> float:
    """The power of a term in the table."""
    return float(getattr(DEPTHWISE_POWERS, f"{term}_power"))
