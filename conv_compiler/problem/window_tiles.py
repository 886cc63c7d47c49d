# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of result pixels whose source pixels are kept in LDS, each of them once.

The source pixels of a tile are its *window*. A line of LDS holds one pixel. Lines are in such an
order that pixels which adjacent units meet by the same tap have adjacent lines.

Lines are kept in planes. A plane is one *piece* of 8 channels of each line, so eight adjacent lines
of it are 128 adjacent bytes. An instruction multiplies two pieces of one group, of any two taps.
It is told how far the second one is from the first.

Behind the window lie the weights: of each group, tap and piece those of all result channels. The
order of taps is that in which their pixels rise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from conv_compiler.problem.slides import Slide, Spaced

# Units of a patch: the rows of one matrix instruction. Channels of a piece.
PATCH, PIECE = 64, 8
# Source channels of a tile, columns that 32 lanes store in fours, and sums of a thread, of which a
# patch has half a one a column.
MOST_CHANNELS, MOST_COLUMNS, MOST_SUMS = 64, 128, 128
# A patch is one row of units or has eight: eight units in a row are equally far apart.
PATCH_ROWS = (1, 8)
WARP_GROUP, WAVE = 128, 32  # threads
WAVE_ROWS = PATCH * WAVE // WARP_GROUP  # of each patch that a wave has
PIECE_BYTES, LINE_PIECES = 16, 8  # of a piece; pieces that lie in all banks


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


@dataclass(frozen=True, kw_only=True)
class WindowTile:
    """A tile of `images` x `units` (depth, rows, columns) units of result pixels, for
    `merged_groups` adjacent groups of `sources` source and `results` result channels.

    Units are cut into patches of 64: `patch_rows` rows of as many columns as that leaves.
    `wave_groups` share the patches. `taps` are those of the filter along each axis, missing axes
    have one.
    """

    images: int
    units: tuple[int, int, int]
    patch_rows: int
    wave_groups: int
    slides: tuple[Slide, Slide, Slide]
    taps: tuple[int, ...]
    sources: int
    results: int
    merged_groups: int

    @classmethod
    def of(
        cls, dimensions: Sequence[Spaced], direction: str, rows: int, columns: int, **more: Any
    ) -> WindowTile:
        """That of a convolution. A single dimension lies along the columns, as units that are
        adjacent in LDS do."""
        found = [one.slide(direction) for one in dimensions]
        missing = 3 - len(found)
        depth, row, column = [Slide()] * missing + found
        taps = (*[1] * missing, *(one.taps for one in dimensions))
        return cls(units=(1, rows, columns), slides=(depth, row, column), taps=taps, **more)

    @property
    def broken_rule(self) -> str:
        """The rule that a tile breaks; empty where a kernel can have it."""
        _, rows, columns = self.units
        rules = {
            f"a patch has {' or '.join(map(str, PATCH_ROWS))} rows": self.patch_rows in PATCH_ROWS,
            "rows and columns are whole patches": rows % self.patch_rows == 0
            and columns % self.patch_columns == 0,
            "wave groups share the patches evenly": math.prod(self.patches) % self.wave_groups == 0,
            f"channels of a group come in {PIECE}s": self.sources % PIECE
            == self.results % PIECE
            == 0,
            f"there are {MOST_CHANNELS} source channels at most": self.block <= MOST_CHANNELS,
            f"there are {MOST_COLUMNS} columns at most": self.columns <= MOST_COLUMNS,
            f"a thread has {MOST_SUMS} sums at most": self.sums <= MOST_SUMS,
            "lanes of a wave store whole rows": self._stores_rows(4) and self._stores_rows(8),
        }
        return next((rule for rule, holds in rules.items() if not holds), "")

    def _stores_rows(self, width: int) -> bool:
        """Whether lanes that store so many columns each have whole rows, no more than a wave's."""
        across, rest = divmod(self.columns, width)
        return rest == 0 and WAVE % across == 0 and WAVE // across <= WAVE_ROWS

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.wave_groups * WARP_GROUP

    @property
    def own_patches(self) -> int:
        """Patches of a wave group."""
        return math.prod(self.patches) // self.wave_groups

    @property
    def sums(self) -> int:
        """Sums of a thread."""
        return self.own_patches * self.columns // 2

    @property
    def phase_columns(self) -> int:
        """Result channels of the merged groups."""
        return self.results * self.merged_groups

    @property
    def columns(self) -> int:
        """Columns of the GEMM: result channels of all phases."""
        return self.phase_columns * math.prod(self.phases)

    @property
    def block(self) -> int:
        """Source channels of the merged groups."""
        return self.sources * self.merged_groups

    @property
    def pieces(self) -> int:
        """Pieces of a group's source channels."""
        return self.sources // PIECE

    @property
    def planes(self) -> int:
        """Pieces of a line."""
        return self.block // PIECE

    @property
    def plane(self) -> int:
        """From one piece of a line to the next, which lies in other banks, in pieces."""
        return -(-self.lines // LINE_PIECES) * LINE_PIECES + 1

    @property
    def window_bytes(self) -> int:
        """LDS of the window."""
        return -(-self.planes * self.plane // LINE_PIECES) * LINE_PIECES * PIECE_BYTES

    @property
    def piece_bytes(self) -> int:
        """LDS of the weights of a piece."""
        return self.results * PIECE_BYTES

    @property
    def group_pieces(self) -> int:
        """Pieces of the weights of a group."""
        return math.prod(self.taps) * self.pieces

    @property
    def weight_bytes(self) -> int:
        """LDS of the weights, and of zeros in the place of those of one piece."""
        return (self.merged_groups * self.group_pieces + 1) * self.piece_bytes

    @property
    def patch_columns(self) -> int:
        """Columns of a patch."""
        return PATCH // self.patch_rows

    @cached_property
    def patches(self) -> tuple[int, int, int, int]:
        """Patches along images, depth, rows and columns."""
        depths, rows, columns = self.units
        return self.images, depths, rows // self.patch_rows, columns // self.patch_columns

    @property
    def rows(self) -> int:
        """Units of the tile: the rows of its GEMM."""
        return self.images * math.prod(self.units)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The source pixels along depth, rows and columns."""
        return tuple(map(Span.of, self.slides, self.units))

    @cached_property
    def line_steps(self) -> tuple[int, ...]:
        """Lines from image to image, and from unit to unit of each axis."""
        lines = [span.lines for span in self.spans]
        return tuple(math.prod(lines[at:]) for at in range(len(lines) + 1))

    @property
    def lines(self) -> int:
        """Source pixels of the tile."""
        return self.images * self.line_steps[0]

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """Phases of each axis."""
        return tuple(slide.phases for slide in self.slides)

    def tiles(self, batch: int) -> tuple[int, int, int, int]:
        """Tiles along images and along the axes of a problem of so many images."""
        depths, rows, columns = (
            -(-slide.units // own) for slide, own in zip(self.slides, self.units, strict=True)
        )
        return -(-batch // self.images), depths, rows, columns

    def weight_tap(self, tap: int) -> int:
        """The place of a tap among the weights: pixels that taps meet rise in this order."""
        return math.prod(self.taps) - 1 - tap if self.is_falling else tap

    @property
    def is_falling(self) -> bool:
        """Whether later taps meet earlier pixels: those of a data gradient."""
        return any(
            later.offset < earlier.offset
            for slide in self.slides
            for reads in slide.window
            for earlier, later in itertools.pairwise(reads)
        )

    @cached_property
    def pairs(self) -> int:
        """Instructions of a patch and of a group, where all pieces of a phase find another one."""
        counts = itertools.product(*(map(len, slide.window) for slide in self.slides))
        return sum(-(-math.prod(taps) * self.pieces // 2) for taps in counts)

    def products(self) -> Iterator[Product]:
        """The instructions of a patch and of a group, phase by phase."""
        steps = self.line_steps[1:]
        for phase, places in enumerate(itertools.product(*map(range, self.phases))):
            windows = [slide.window[at] for slide, at in zip(self.slides, places, strict=True)]
            found = []
            for reads in itertools.product(*windows):
                lines = [
                    span.line(read.offset) * step
                    for span, read, step in zip(self.spans, reads, steps, strict=True)
                ]
                tap = self.weight_tap(_linear([read.tap for read in reads], self.taps))
                found += [
                    (tap * self.pieces + piece, sum(lines) + piece * self.plane)
                    for piece in range(self.pieces)
                ]
            yield from _paired(phase, sorted(found))


def _paired(phase: int, found: list[tuple[int, int]]) -> Iterator[Product]:
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


def _linear(places: Sequence[int], extents: Sequence[int]) -> int:
    found = 0
    for place, extent in zip(places, extents, strict=True):
        found = found * extent + place
    return found
