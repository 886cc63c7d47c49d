# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sums of a bias's gradient as axes of the output gradient, and how levels cut them.

An axis is kept (channels) or summed (images and pixels). Neighbouring axes of a kind are one, so
there are two or three: summed and kept (channels last), summed, kept and summed (channels first),
or kept, summed and kept (groups outermost).

A level cuts each summed axis into `parts` of neighbours, each `inner` elements side by side:

    sums[part, kept, inner] = sum over the middle of d[part, middle, inner, kept]

Parts give workgroups work, and the elements side by side fill the lanes. The last level has one of
either, and its sums are the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Elements along an axis of a tensor, which are kept or summed."""

    size: int
    kept: bool


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How a level cuts one summed axis: into `parts`, each summed `inner` elements at a time."""

    parts: int
    inner: int


# The last level's cut of any axis.
WHOLE = Cut(parts=1, inner=1)


def joined(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes without those of one element, neighbours of a kind as one.

    A kept axis is left, where there is one.
    """
    found: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if found and found[-1].kept == axis.kept:
            found[-1] = Axis(size=found[-1].size * axis.size, kept=axis.kept)
        else:
            found.append(axis)
    return tuple(found) if any(axis.kept for axis in found) else (*found, Axis(size=1, kept=True))


def axes_of_sums(problem: ConvProblem) -> tuple[Axis, ...]:
    """Those of the output gradient of a problem."""
    letters = problem.layout_row.grouped.output
    sizes = {"N": (problem.n,), "G": (problem.g,), "K": (problem.k,), "*": problem.out_image}
    return joined(
        [Axis(size=size, kept=letter in "GK") for letter in letters for size in sizes[letter]]
    )


def summed_of(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The summed ones."""
    return tuple(axis for axis in axes if not axis.kept)


@dataclass(frozen=True, kw_only=True)
class LevelLoops:
    """One level over the axes of a tensor.

    `loops` are its loops as they lie in memory, neighbours of a kind as one: kept means that the
    loop is not summed. `result` are the axes of its sums.
    """

    loops: tuple[Axis, ...]
    result: tuple[Axis, ...]

    @property
    def parallel(self) -> tuple[int, ...]:
        """Sizes of the loops that are not summed, outermost first."""
        return tuple(loop.size for loop in self.loops if loop.kept)

    @property
    def summed(self) -> tuple[int, ...]:
        """Sizes of those that are."""
        return tuple(loop.size for loop in self.loops if not loop.kept)


def level_loops(axes: Sequence[Axis], cuts: Sequence[Cut]) -> LevelLoops:
    """The loops of a level over axes, with the cut of each summed axis in order."""
    cut = iter(cuts)
    loops: list[Axis] = []
    result: list[Axis] = []
    for axis in axes:
        if axis.kept:
            loops.append(axis)
            result.append(axis)
            continue
        one = next(cut)
        middle, rest = divmod(axis.size, one.parts * one.inner)
        if rest:
            raise ValueError(f"axis of {axis.size}: {one.parts} parts of {one.inner} do not divide")
        loops.append(Axis(size=one.parts, kept=True))
        loops.append(Axis(size=middle, kept=False))
        loops.append(Axis(size=one.inner, kept=True))
        result += [Axis(size=size, kept=False) for size in (one.parts, one.inner)]
    return LevelLoops(loops=joined(loops), result=joined(result))


def cuts_of(levels: Sequence[Sequence[int]]) -> list[list[Cut]]:
    """Cuts from numbers: of each level the parts and the inner elements of each axis, in turn."""
    return [
        [
            Cut(parts=parts, inner=inner)
            for parts, inner in zip(level[::2], level[1::2], strict=True)
        ]
        for level in levels
    ]


def levels_of(
    axes: Sequence[Axis], cuts: Sequence[Sequence[Cut]]
) -> Iterator[tuple[LevelLoops, bool]]:
    """Each level's loops, and whether it is the last."""
    for number, level in enumerate(cuts, start=1):
        loops = level_loops(axes, level)
        yield loops, number == len(cuts)
        axes = loops.result


def kept_shape(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The shape of the sums: the kept axes."""
    return tuple(axis.size for axis in axes if axis.kept)


def elements(axes: Sequence[Axis]) -> int:
    """Elements of a tensor of these axes."""
    return math.prod(axis.size for axis in axes)
