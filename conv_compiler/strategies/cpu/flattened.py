# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""1x1 convolutions whose pixels are rows of any length, as each is read by itself, in its place."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import divisors
from conv_compiler.strategies.cpu.cost_constants import DIRECT

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


def flattened(problem: ConvProblem) -> dict[int, ConvProblem]:
    """The problem, or where every pixel is read by itself and in its place, its pixels as rows: by
    the length of the rows, 0 for those of the image."""
    whole, pads = (1,) * problem.ndim, (*problem.pad_low, *problem.pad_high)
    if problem.filter != whole or problem.stride != whole or any(pads):
        return {0: problem}
    pixels = problem.n * math.prod(problem.image)
    return {
        length: replace(
            problem,
            n=1,
            image=(pixels // length, length),
            filter=(1, 1),
            stride=(1, 1),
            dilation=(1, 1),
            pad_low=(0, 0),
            pad_high=(0, 0),
            layout=problem.layout_row.spell(2),
        )
        for length in divisors(pixels)
        if length <= DIRECT.most_row_pixels
    }
