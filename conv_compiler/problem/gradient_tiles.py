# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of pixels of a weight gradient whose window of the image is kept in LDS, each pixel once.

A tile is a box of output pixels. The image's pixels that any tap meets there are its *window*. A
line of LDS holds one pixel, in pieces of 8 channels. Pieces lie in planes: a plane is one piece of
each line. Of a row of the window the pixels that one tap meets are adjacent lines.

So a tap's lines are those of the first tap, a constant distance further. Eight adjacent ones are
128 bytes, which an instruction reads at once.

Products run along the tile's pixels, sixteen a step. The last step may have fewer. Lines of those
that are missing are zeros behind the window, at which every tap finds zeros.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# Channels of a piece; pixels of a product; bytes of a piece, and pieces that lie in all banks.
PIECE, STEP = 8, 16
PIECE_BYTES, LINE_PIECES = 16, 8
WAVE = 32  # threads
# Sums of a lane; more spill.
MOST_SUMS = 160
# Sums of a lane for eight by eight products of channels.
BLOCK_SUMS = 2


class Slid(NamedTuple):
    """How a filter slides along an axis: taps, stride and dilation."""

    taps: int
    stride: int
    dilation: int

    def reach(self, pixels: int) -> int:
        """Pixels of the image from the first to the last that so many outputs meet."""
        return (pixels - 1) * self.stride + (self.taps - 1) * self.dilation + 1


class Row(NamedTuple):
    """A product's eight rows: a tap, and a piece of the channels of the image's group."""

    tap: int
    piece: int


@dataclass(frozen=True, kw_only=True)
class GradientTile:
    """A tile of `pixels` output pixels along each axis, of each of `images`, for `merged_groups`
    adjacent groups of `sources` channels of the image and `results` of the output gradient.

    A wave has `wave_pieces` pieces of the output gradient: some groups, or a share of one.
    """

    images: int
    pixels: tuple[int, ...]
    slides: tuple[Slid, ...]
    sources: int
    results: int
    merged_groups: int
    wave_pieces: int

    @property
    def broken_rule(self) -> str:
        """The rule that a tile breaks; empty where a kernel can have it."""
        own, group = self.wave_pieces, self.result_pieces
        rules = {
            f"channels of a group come in {PIECE}s": self.sources % PIECE
            == self.results % PIECE
            == 0,
            "waves share the pieces evenly": self.planes[1] % own == 0,
            "a wave has whole groups or a share of one": own % group == 0 or group % own == 0,
            f"a lane has {MOST_SUMS} sums at most": self.sums <= MOST_SUMS,
            "a workgroup has 1024 threads at most": self.threads <= 1024,
        }
        return next((rule for rule, holds in rules.items() if not holds), "")

    @property
    def result_pieces(self) -> int:
        """Pieces of a group of the output gradient."""
        return self.results // PIECE

    @property
    def source_pieces(self) -> int:
        """Pieces of a group of the image."""
        return self.sources // PIECE

    @property
    def planes(self) -> tuple[int, int]:
        """Planes of the window, and of the output gradient."""
        return self.source_pieces * self.merged_groups, self.result_pieces * self.merged_groups

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return self.planes[1] // self.wave_pieces

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.waves * WAVE

    @property
    def wave_groups(self) -> int:
        """Groups of which a wave has sums."""
        return max(1, self.wave_pieces // self.result_pieces)

    @property
    def group_pieces(self) -> int:
        """Pieces of a group's output gradient that a wave has."""
        return min(self.wave_pieces, self.result_pieces)

    @cached_property
    def taps(self) -> tuple[tuple[int, ...], ...]:
        """The taps, by their place along each axis."""
        return tuple(itertools.product(*(range(slide.taps) for slide in self.slides)))

    @cached_property
    def rows(self) -> tuple[tuple[Row, Row | None], ...]:
        """What the instructions of a group multiply: two eights of rows each."""
        every = [
            Row(tap, piece) for tap in range(len(self.taps)) for piece in range(self.source_pieces)
        ]
        return tuple(
            (first, second)
            for first, second in itertools.zip_longest(every[::2], every[1::2])
            if first is not None
        )

    @property
    def sums(self) -> int:
        """Sums of a lane."""
        return self.wave_groups * self.group_pieces * len(self.rows) * 2 * BLOCK_SUMS

    @property
    def count(self) -> int:
        """Output pixels."""
        return self.images * math.prod(self.pixels)

    @property
    def steps(self) -> int:
        """Instructions along the pixels."""
        return -(-self.count // STEP)

    @property
    def rests(self) -> int:
        """Rests by the stride of the last axis: a row of the window has the pixels of one after
        those of another."""
        return self.slides[-1].stride

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Lines along each axis."""
        *outer, last = (
            slide.reach(own) for slide, own in zip(self.slides, self.pixels, strict=True)
        )
        return (*outer, self.rests * -(-last // self.rests))

    @cached_property
    def row_lines(self) -> int:
        """Lines of a row of the window, some of them unused.

        The next output row then begins where eight more columns of the row before would, but for
        whole eights: so eight pixels that two rows share lie in all banks.
        """
        least = self.extents[-1]
        if len(self.slides) == 1 or self.pixels[-1] % LINE_PIECES == 0:
            return least
        stride = self.slides[-2].stride
        fitting = (
            own
            for own in range(least, least + LINE_PIECES)
            if (own * stride - self.pixels[-1]) % LINE_PIECES == 0
        )
        return next(fitting, least)

    @cached_property
    def line_steps(self) -> tuple[int, ...]:
        """Lines from image to image, and along each axis."""
        lines = (*self.extents[:-1], self.row_lines)
        return tuple(math.prod(lines[at:]) for at in range(len(lines) + 1))

    def pixel_lines(self) -> tuple[int, ...]:
        """Lines from an output pixel to the next one along each axis, as the first tap meets
        them."""
        *outer, last = zip(self.slides, self.line_steps[1:], strict=True)
        return (*(slide.stride * step for slide, step in outer), last[1])

    def tap_line(self, tap: Sequence[int]) -> int:
        """Lines from those of the first tap to those of another."""
        *outer, last = (at * slide.dilation for at, slide in zip(tap, self.slides, strict=True))
        places = self.extents[-1] // self.rests
        found = last % self.rests * places + last // self.rests
        return found + sum(at * step for at, step in zip(outer, self.line_steps[1:], strict=False))

    @property
    def last_tap_line(self) -> int:
        """The most lines between taps."""
        return max(map(self.tap_line, self.taps))

    @property
    def lines(self) -> int:
        """Lines of the window."""
        return self.images * self.line_steps[0]

    @property
    def window(self) -> int:
        """Pixels of the window."""
        return self.images * math.prod(self.extents)

    def plane_lines(self, has_missing: bool) -> tuple[int, int]:
        """Lines of the planes of window and output gradient; the window's with the zeros for
        pixels that are missing."""
        return self.lines + (self.last_tap_line + 1) * has_missing, self.steps * STEP

    def plane_pieces(self, has_missing: bool) -> tuple[int, int]:
        """From one plane of each to the next, which begins in other banks."""
        first, second = (
            -(-lines // LINE_PIECES) * LINE_PIECES + 1 for lines in self.plane_lines(has_missing)
        )
        return first, second

    def stage_bytes(self, has_missing: bool) -> int:
        """LDS of one tile."""
        pieces = (
            planes * pitch
            for planes, pitch in zip(self.planes, self.plane_pieces(has_missing), strict=True)
        )
        return sum(pieces) * PIECE_BYTES

    def is_ragged(self, batch: int, outs: Sequence[int]) -> bool:
        """Whether tiles of so many images and output pixels have missing pixels."""
        sizes = zip((batch, *outs), (self.images, *self.pixels), strict=True)
        return self.count % STEP != 0 or any(size % own for size, own in sizes)

    def tiles(self, batch: int, outs: Sequence[int]) -> tuple[int, ...]:
        """Tiles along the images and along each axis."""
        sizes = zip((batch, *outs), (self.images, *self.pixels), strict=True)
        return tuple(-(-size // own) for size, own in sizes)
