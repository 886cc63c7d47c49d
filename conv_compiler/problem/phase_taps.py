# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where in its window each phase of a strided data gradient has taps.

The window of `canonical.Phases` holds the taps of all phases. A phase meets the places at which one
of its own taps is; at the others its arranged weight is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.problem.phases import Line

if TYPE_CHECKING:
    from conv_compiler.problem.canonical import Phases
    from conv_compiler.problem.conv_problem import ConvProblem


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
