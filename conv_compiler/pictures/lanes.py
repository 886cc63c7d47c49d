# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which lane holds what of the operands of a matrix instruction."""

from __future__ import annotations

from conv_compiler.ir.lane_layouts import FRAGMENTS, LaneLayout, lane_layouts
from conv_compiler.markup import Markup, box, svg, words

# Pixels of an element, of its smallest text, and between drawings.
_CELL, _GAP, _TITLE = 21, 40, 22
_AXES = (("m", "k"), ("k", "n"), ("m", "n"))


def lanes_pictures(intrinsic: str) -> dict[str, Markup]:
    """A drawing of each of A, B and C of an instruction: every element with its lane.

    Where several lanes hold an element the first is named. Raises UnsupportedStrategy for a name
    that IREE does not know.
    """
    rows = zip(lane_layouts(intrinsic), FRAGMENTS, _AXES, strict=True)
    return {name: _operand(layout, name, axes) for layout, name, axes in rows}


def _operand(layout: LaneLayout, name: str, axes: tuple[str, str]) -> Markup:
    rows, columns = layout.shape
    lanes = _lanes(layout)
    holders = _holders(layout, lanes)
    cells = []
    for (row, column), held in holders.items():
        lane, register = held[0]
        others = "" if len(held) == 1 else f" (and {len(held) - 1} more)"
        tip = (
            f"{name}[{axes[0]} {row}, {axes[1]} {column}]: lane {lane}{others}, element {register}"
        )
        x, y = column * _CELL, _TITLE + row * _CELL
        hue = 360 * lane / lanes
        cells.append(box(x, y, _CELL, _CELL, f"hsl({hue:.0f}, 70%, 82%)", tip, "#fff"))
        cells.append(words(x + _CELL / 2, y + _CELL / 2 + 3.5, str(lane), 9, "middle"))
    title = words(0, 14, f"{name} ({axes[0]} down, {axes[1]} across): the number is the lane", 12)
    width, height = max(columns * _CELL, 330), _TITLE + rows * _CELL + _GAP / 2
    label = f"{name}: {rows} x {columns} elements over {lanes} lanes"
    return svg(width, height, title, *cells, label=label)


def _lanes(layout: LaneLayout) -> int:
    """Lanes of the subgroup: the least power of two that all threads of the layout fit in."""
    reach = max(stride * size for stride, size in zip(layout.strides, layout.thread, strict=True))
    return 32 if reach <= 32 else 64


def _holders(layout: LaneLayout, lanes: int) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """By element: the lanes that hold it, each with the number among its own elements."""
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for lane in range(lanes):
        for register, position in enumerate(layout.positions(lane)):
            found.setdefault(position, []).append((lane, register))
    return dict(sorted(found.items()))
