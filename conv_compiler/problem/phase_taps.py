# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where in its window each phase of a strided data gradient has taps.

The window of `canonical.Phases` holds the taps of all phases. A phase meets the places at which one
of its own taps is; at the others its arranged weight is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.phases import Line

if TYPE_CHECKING:
    from conv_compiler.problem.canonical import Phases
    from conv_compiler.problem.conv_problem import ConvProblem


@dataclass(frozen=True, kw_only=True)
class TapTable:
    """The places of a window of `places` that tiles of rows meet, of `steps` iterations each.

    `met` has the places of some tiles, rising, and `first` the number of the first of these: 0 for
    the first entry. `last_first` is the number of the last tile where tiles are started from that
    one on, because the last ones meet more places; else it is 0.
    """

    places: int
    steps: int
    first: tuple[int, ...]
    met: tuple[tuple[int, ...], ...]
    last_first: int


def places_met(problem: ConvProblem, axis: int, cut: Phases) -> tuple[tuple[int, ...], ...]:
    """Places of the window that each phase meets in one spatial dimension, rising.

    One entry for each of the phases that are computed. It takes time in proportion to the taps.
    """
    line = Line.of(problem, axis)
    found: list[set[int]] = [set() for _ in range(cut.count)]
    for f in line.reaching:
        offset, phase = line.tap(f)
        place, rest = divmod(offset - cut.lowest, cut.step)
        if rest == 0 and 0 <= place < cut.taps and 0 <= phase - cut.first < cut.count:
            found[phase - cut.first].add(place)
    return tuple(tuple(sorted(places)) for places in found)
