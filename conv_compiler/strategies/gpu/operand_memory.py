# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the operands of a problem lie in memory: adjacent channels, and from pixel to pixel."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.strategies.gpu.tilings import merged

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


class Sides(NamedTuple):
    """A number of elements of either operand: of the output gradient, of the input."""

    gradient: int
    image: int


def _is_last(letters: str, channel: str, groups: int) -> bool:
    """Whether channels of a group lie side by side."""
    inner = letters[letters.index(channel) + 1 :]
    return inner == "" or (inner == "G" and groups == 1)


@lru_cache(maxsize=64)
def adjacent_channels(problem: ConvProblem, merged_groups: int) -> Sides:
    """Channels that lie side by side in memory."""
    problem = merged(problem, merged_groups)
    row = problem.layout_row.grouped
    return Sides(
        gradient=problem.k if _is_last(row.output, "K", problem.g) else 1,
        image=problem.c if _is_last(row.input, "C", problem.g) else 1,
    )


@lru_cache(maxsize=64)
def pitches(problem: ConvProblem) -> Sides:
    """Elements from a pixel to the next where channels lie side by side, else along the innermost
    axis."""
    row = problem.layout_row.grouped
    sizes = {"G": problem.g, "N": problem.n, "K": problem.k, "C": problem.c}

    def inside(letters: str) -> int:
        inner = letters[letters.rindex("*") + 1 :] if "*" in letters else letters
        return math.prod(sizes[one] for one in inner)

    return Sides(gradient=inside(row.output), image=inside(row.input))
