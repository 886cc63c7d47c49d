# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operands of `fwd` and `bwd_data` a kernel is to copy channels last, and the problem that
their GEMM sees then."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from conv_compiler.problem.canonical import EquivalentWgrad
from conv_compiler.problem.layouts import Layout
from conv_compiler.strategies.gpu.cost_constants import OPERAND_COPIES
from conv_compiler.strategies.gpu.transposition import Plane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A problem whose operands are copied, as its GEMM sees it, and what is copied.

    `planes` are the operands that move, `image` and `gradient` by name.
    """

    wgrad: ConvProblem
    planes: Mapping[str, Plane]

    @property
    def kernels(self) -> Mapping[str, Plane]:
        """What is copied by a kernel, by the role of its op; other operands are views."""
        return {f"{name}-copy": one for name, one in self.planes.items() if not one.is_view}


@lru_cache(maxsize=256)
def copied(problem: ConvProblem) -> Copied | None:
    """The problem with its summed channels last in both operands, and enough of them for a vector;
    None where they are so.

    The weight of a data gradient is arranged by a kernel of its own (`build/bwd_data.py`), and is
    read along its rows.
    """
    if not isinstance(problem, EquivalentWgrad) or problem.n == 1:
        return None
    row, channels, is_fwd = problem.layout_row.grouped, problem.n, problem.of.direction == "fwd"
    if is_fwd and channels < OPERAND_COPIES.few_channels:
        least = OPERAND_COPIES.least_channels
        channels = -(-channels // least) * least
    if row.input.endswith("N") and channels == problem.n:
        return None
    planes = {"image": _plane(problem, row.input, problem.image, channels)}
    moved = Layout(
        input=_with_last(row.input),
        output=_with_last(row.output) if is_fwd else row.output,
        weight=row.weight,
    )
    if is_fwd and (moved.output != row.output or channels > problem.n):
        planes["gradient"] = _plane(problem, row.output, problem.out_image, channels)
    return Copied(wgrad=replace(problem, n=channels, row=moved), planes=planes)


def _with_last(letters: str) -> str:
    return letters.replace("N", "") + "N"


def _plane(problem: ConvProblem, letters: str, space: tuple[int, ...], padded: int) -> Plane:
    sizes = {"G": problem.g, "N": problem.n, "K": problem.k, "C": problem.c, "*": math.prod(space)}
    front, behind = (math.prod(sizes[one] for one in part) for part in letters.split("N"))
    is_last = behind == 1
    outer, inner = (1, front) if is_last else (front, behind)
    return Plane(outer=outer, channels=problem.n, inner=inner, padded=padded, is_last=is_last)
