# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which register tiles a row of result pixels is cut into, and what each reads: numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.slides import Read, Slide, even_tiles


class Progression(NamedTuple):
    """Reads whose taps and offsets rise by one step each: `length` of them from `first` on."""

    first: Read
    step: Read
    length: int


def progression(reads: tuple[Read, ...]) -> Progression:
    """The reads of a phase, their offsets rising. Raises UnsupportedStrategy for others."""
    found = sorted(reads, key=lambda read: read.offset)
    if not found:
        return Progression(Read(0, 0), Read(0, 1), 0)
    if len(found) == 1:
        return Progression(found[0], Read(0, 1), 1)
    step = Read(found[1].tap - found[0].tap, found[1].offset - found[0].offset)
    for one, after in pairwise(found):
        if (after.tap - one.tap, after.offset - one.offset) != step:
            raise UnsupportedStrategy(f"taps {reads}: not evenly apart; use another strategy")
    return Progression(found[0], step, len(found))


@dataclass(frozen=True, kw_only=True)
class Run:
    """Adjacent register tiles of a row that are computed alike: `repeat` of `units` units each.

    `reads` has, for each read of the phase, its tap, its offset and the units of a tile whose
    source pixel is inside the image. `taps` are the reads where they are inside for all units, else
    None.
    """

    first: int
    units: int
    repeat: int
    reads: tuple[tuple[Read, tuple[int, ...]], ...]
    taps: Progression | None = None


def units_of(slide: Slide, phase: int) -> int:
    """Units whose pixel of a phase the result has."""
    return -(-(slide.outs - phase) // slide.phases)


def equal_runs(slide: Slide, phase: int, size: int) -> list[Run]:
    """The tiles of a row of one phase, of `size` units each, where no pixel read is outside.

    The last one begins earlier where they are more than the row has: it computes some units again.
    Raises UnsupportedStrategy for rows of fewer units.
    """
    units, reads = units_of(slide, phase), slide.window[phase]
    if units < size:
        raise UnsupportedStrategy(f"rows of {units} units: fewer than a tile's {size}")
    count, rest = divmod(units, size)
    whole = tuple((one, tuple(range(size))) for one in reads)
    taps = progression(reads) if reads else None
    found = [Run(first=0, units=size, repeat=count, reads=whole, taps=taps)]
    if rest:
        found.append(Run(first=units - size, units=size, repeat=1, reads=whole, taps=taps))
    return found


def runs(slide: Slide, phase: int, most: int) -> list[Run]:
    """The tiles of a row of one phase; those that read alike are one run."""
    reads = sorted(slide.window[phase], key=lambda read: read.offset)

    def read(tile: tuple[int, int]) -> tuple[tuple[Read, tuple[int, ...]], ...]:
        first, size = tile
        return tuple(
            (one, inside)
            for one in reads
            if (
                inside := tuple(
                    unit
                    for unit in range(size)
                    if 0 <= (first + unit) * slide.step + one.offset < slide.size
                )
            )
        )

    found = []
    cut = even_tiles(units_of(slide, phase), most)
    for (units, what), alike in groupby(cut, key=lambda tile: (tile[1], read(tile))):
        same = list(alike)
        whole = len(what) == len(reads) > 0 and all(len(inside) == units for _, inside in what)
        found.append(
            Run(
                first=same[0][0],
                units=units,
                repeat=len(same),
                reads=what,
                taps=progression(tuple(reads)) if whole else None,
            )
        )
    return found
