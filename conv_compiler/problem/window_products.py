# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source pixels of a tile along one axis, and how its pieces are multiplied in twos
(`window_tiles.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conv_compiler.problem.slides import Slide


class Span(NamedTuple):
    """The source pixels of `units` adjacent units along one axis.

    Pixel `origin + place * step + rest`, from that of the first unit, is number
    `rest * places + place`: pixels that a tap meets are adjacent, whatever the step.
    """

    units: int
    step: int
    origin: int
    rests: int
    places: int

    @classmethod
    def of(cls, slide: Slide, units: int) -> Span:
        """That of a slide."""
        offsets = [read.offset for reads in slide.window for read in reads] or [0]
        reach = max(offsets) - min(offsets)
        return cls(
            units=units,
            step=slide.step,
            origin=min(offsets),
            rests=min(slide.step, reach + 1),
            places=units + reach // slide.step,
        )

    @property
    def lines(self) -> int:
        """Pixels of the span, of which a tap may leave some out."""
        return self.rests * self.places

    def line(self, offset: int) -> int:
        """Lines from that of a unit to the pixel at an offset from it."""
        place, rest = divmod(offset - self.origin, self.step)
        return rest * self.places + place


class Product(NamedTuple):
    """Two pieces of a group that one instruction multiplies, of a phase.

    `line` is the first one's place: in pieces of LDS, from the first piece of the group and of a
    unit's own line. `weights` is the place of its weights among those of the group, in pieces. The
    second one lies `to_line` and `to_weights` behind. Where there is none, these are 0 and None.
    """

    phase: int
    line: int
    weights: int
    to_line: int
    to_weights: int | None


def paired(phase: int, found: list[tuple[int, int]]) -> Iterator[Product]:
    """Pieces (place of the weights, place of the line) in twos, as far as both places of the
    second one are behind those of the first: distances have no sign.

    From the last one on, each takes the nearest one in front that it can.
    """
    while found:
        weights, line = found.pop()
        other = next((one for one in reversed(found) if one[1] <= line), None)
        if other is None:
            yield Product(phase, line, weights, 0, None)
            continue
        found.remove(other)
        yield Product(phase, other[1], other[0], line - other[1], weights - other[0])
