# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the weights of a thread lie in memory, and in which pieces they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


class WeightSteps(NamedTuple):
    """Elements between weights of adjacent groups, result channels, taps and source channels."""

    group: int
    result: int
    tap: int
    source: int


def channels(problem: ConvProblem) -> tuple[int, int]:
    """Channels of a group in the source and in the result of `fwd` or `bwd_data`."""
    forward = problem.direction == "fwd"
    return (problem.c, problem.k) if forward else (problem.k, problem.c)


def weight_steps(problem: ConvProblem) -> WeightSteps:
    """The steps of a problem's weight, as its layout has it."""
    sizes = {"G": problem.g, "K": problem.k, "C": problem.c, "*": math.prod(problem.filter)}
    steps, step = dict[str, int](), 1
    for letter in reversed(problem.layout_row.grouped.weight):
        steps[letter] = step
        step *= sizes[letter]
    source, result = ("C", "K") if problem.direction == "fwd" else ("K", "C")
    return WeightSteps(steps["G"], steps[result], steps["*"], steps[source])


def pieces(distances: Iterable[int], aligned: int, most: int) -> tuple[tuple[int, int], ...]:
    """Aligned runs of 1, 2, 4 up to `most` elements that hold all distances and nothing else.

    Each is its first distance and its size. They are counted from an address that is a multiple of
    `aligned` elements.
    """
    wanted, found, behind = set(distances), [], -math.inf
    for distance in sorted(wanted):
        if distance < behind:
            continue
        size = most
        while size > 1 and not (
            math.gcd(aligned, distance) % size == 0
            and wanted.issuperset(range(distance, distance + size))
        ):
            size //= 2
        found.append((distance, size))
        behind = distance + size
    return tuple(found)
