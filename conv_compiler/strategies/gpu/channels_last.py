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
from conv_compiler.strategies.gpu.transposition import Plane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conv_compiler.problem.conv_problem import ConvProblem

# Fewer channels than fill a vector are no gain.
LEAST_CHANNELS = 8


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A problem whose operands are copied, as its GEMM sees it, and what is copied.

    `planes` are the operands that move, `image` and `gradient` by name.
    """

    wgrad: ConvProblem
    planes: Mapping[str, Plane]

    @property
    def copied_roles(self) -> list[str]:
        """Roles of the kernels that copy; what is one element inside is a view."""
        return [f"{name}-copy" for name, plane in self.planes.items() if plane.inner > 1]


@lru_cache(maxsize=256)
def copied(problem: ConvProblem) -> Copied | None:
    """The problem with its summed channels last in both operands; None where they are there.

    The weight of a data gradient is arranged by a kernel of its own (`build/bwd_data.py`), and is
    read along its rows.
    """
    if not isinstance(problem, EquivalentWgrad) or problem.n < LEAST_CHANNELS:
        return None
    row = problem.layout_row.grouped
    image = not row.input.endswith("N")
    gradient = problem.of.direction == "fwd" and not row.output.endswith("N")
    if not image:
        return None
    moved = Layout(
        input=_with_last(row.input),
        output=_with_last(row.output) if gradient else row.output,
        weight=row.weight,
    )
    planes = {"image": _plane(problem, row.input, problem.image)}
    if gradient:
        planes["gradient"] = _plane(problem, row.output, problem.out_image)
    return Copied(
        wgrad=replace(problem, row=moved),
        planes=planes,
    )


def _with_last(letters: str) -> str:
    return letters.replace("N", "") + "N"


def _plane(problem: ConvProblem, letters: str, space: tuple[int, ...]) -> Plane:
    sizes = {"G": problem.g, "N": problem.n, "K": problem.k, "C": problem.c, "*": math.prod(space)}
    front, behind = letters.split("N")
    outer, inner = (math.prod(sizes[one] for one in part) for part in (front, behind))
    return Plane(outer=outer, channels=problem.n, inner=inner)
