"""What a kernel of vectors copies of its operands for a tile of the summed loops at a time
(`passes/packed_operands.py`): elements, and pieces of memory that they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.build.bwd_weight import FILTER_LOOPS, OUTPUT_LOOPS
from conv_compiler.cpu_tiles import lanes_of, loop_sizes
from conv_compiler.host import TILE_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.host import VectorUnit
    from conv_compiler.problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Elements of an operand's copy, with room for the end of a last vector, and the pieces of
    memory that they come from."""

    elements: int
    rows: float


def factors_of(instruction: str) -> int:
    """Images whose data stand in one element of a copy."""
    if row := TILE_INSTRUCTIONS.get(instruction):
        return row.products
    return 2 if instruction else 1


def copies(
    problem: ConvProblem,
    share: Mapping[str, int],
    cache: Mapping[str, int],
    unit: VectorUnit,
    deep: str = "",
    step: int = 1,
) -> tuple[Copy, Copy]:
    """The copies of image and gradient; `deep` is the loop of which tiles sum `step` trips,
    innermost in the copy that has not the lanes."""
    taps, pixels = FILTER_LOOPS[-problem.ndim :], OUTPUT_LOOPS[-problem.ndim :]
    reach = [
        (cache.get(p, 1) - 1) * stride + (share.get(t, 1) - 1) * dilation + 1
        for p, t, stride, dilation in zip(
            pixels, taps, problem.stride, problem.dilation, strict=True
        )
    ]
    inner = list(share)[-1]
    layout, lanes = problem.layout_row.grouped, lanes_of(unit, problem)
    images = {"n": cache.get("n", 1), "g": share.get("g", 1)}
    image = images | {"c": share.get("c", 1), **dict(zip(pixels, reach, strict=True))}
    gradient = images | {"k": share.get("k", 1), **{p: cache.get(p, 1) for p in pixels}}
    return (
        _copy(problem, layout.input, image, inner, lanes, deep if inner == "k" else "", step),
        _copy(problem, layout.output, gradient, inner, lanes, deep if inner == "c" else "", step),
    )


def _copy(
    problem: ConvProblem,
    letters: str,
    extents: dict[str, int],
    inner: str,
    vector: int,
    deep: str = "",
    step: int = 1,
) -> Copy:
    """The copy of a tensor of such axes, with so many elements along each; loop `deep` of tiles is
    innermost in it, a line for `step` trips, or `inner`, if it has that."""
    inner = deep or inner
    sizes, pixels = loop_sizes(problem), OUTPUT_LOOPS[-problem.ndim :]
    axes = [p for letter in letters.lower() for p in (pixels if letter == "*" else letter)]
    piece = 1
    for letter in reversed(letters.lower()):
        piece *= extents[pixels[-1]] if letter == "*" else extents[letter]
        if letter == "*" or extents[letter] < sizes[letter]:
            break
    behind = axes[axes.index(inner) + 1 :] if inner in axes else []
    turned = any(axis in pixels or sizes[axis] > 1 for axis in behind)
    rows = math.prod(extents.values()) / piece
    ends = any(problem.pad_low) or extents[axes[-1]] % vector > 0
    is_cut = (turned or any(problem.pad_low)) and ends
    if deep and turned and step > 1:
        blocks = -(-extents.pop(deep) // step)
        whole = math.lcm(step, vector)
        block = vector * (math.prod(extents.values()) + (vector - 1) * is_cut)
        return Copy(elements=blocks * -(-block // whole) * whole, rows=rows)
    if deep and turned:
        extents[deep] = max(extents[deep], vector)
    room = (vector - 1) * (extents[inner] if turned else 1) if is_cut else 0
    return Copy(elements=math.prod(extents.values()) + room, rows=rows)
