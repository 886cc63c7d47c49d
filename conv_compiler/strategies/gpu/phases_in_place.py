# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the matrix kernel of a strided data gradient puts its phases in their places itself.

Phases that meet no pixel of the gradient are zeros, which it stores too
(`build/bwd_data.py`, `passes/join_stores.py`).
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad, data_gradient_of, phases
from conv_compiler.strategies.gpu.stored_sums import has_rows_innermost, stores_result

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Target


def stores_phases(problem: ConvProblem, target: Target, tiling: GpuTiling, split_k: int) -> bool:
    """Whether the matrix kernel puts phases in place.

    It does where it stores the result and lanes have adjacent channels. Three things exclude that:
    an op on the result, a result that is a slice, and pixels of zeros that lie beyond the image.
    """
    if not isinstance(problem, EquivalentWgrad) or problem.stored_in_slice:
        return False
    of = data_gradient_of(problem)
    if of is None or set(of.stride) == {1} or of.fused:
        return False
    if any(phases(of)[axis].first or of.image[axis] % of.stride[axis] for axis in _zeros(of)):
        return False
    is_plain = target.backend == "rocm" and bool(tiling.mma) and has_rows_innermost(problem)
    return is_plain and stores_result(problem, target, tiling, split_k)


def zero_offsets(problem: ConvProblem) -> tuple[int, ...]:
    """How far behind each element of phases that are computed zeros stand, in elements of a data
    gradient."""
    letters = problem.layout_row.grouped.input
    shape, first = problem.shape(letters), letters.index("*")
    steps = [
        range(0, stride * step, step)
        for axis in _zeros(problem)
        for stride, step in [(problem.stride[axis], math.prod(shape[first + axis + 1 :]))]
    ]
    return tuple(sorted(map(sum, product(*steps))))[1:]


def _zeros(problem: ConvProblem) -> list[int]:
    """The dimensions, outermost first, of which one phase alone is computed."""
    cut = phases(problem)
    return [axis for axis in range(problem.ndim) if cut[axis].count < problem.stride[axis]]
