# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `direct-kernel`, which its parts read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from conv_compiler.problem.convolution_sizes import ConvolutionSizes
from conv_compiler.problem.slides import Slide

# The product of two neighbouring source channels, of two neighbours in a row of taps, and the one
# whose sums are in tile registers.
PAIRS, WINDOWS, TILES = "pairs", "windows", "tiles"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Sizes of a source: rows of pixels of an image, and pixels that are added on either side."""

    images: int
    rows: int
    pixels: int
    channels: int
    pads: tuple[int, int]

    @property
    def whole(self) -> int:
        """Pixels of a row of the copy."""
        return self.pads[0] + self.pixels + self.pads[1]


@dataclass(frozen=True, kw_only=True)
class DirectOptions(ConvolutionSizes):
    """Sizes of a direct kernel, and the convolution that it computes.

    `product` is what lies in the lanes: a key of PRODUCTS. A register tile has the sums of
    `columns` adjacent units of result pixels (`problem/slides.py`) for `vectors` of `lanes`. Where
    these are more than the result channels of a group, the last lanes hold none. Where tiles are no
    whole number of these channels, the last begins earlier, and there is one share. A workgroup has
    `rows` rows of result pixels and one of `shares` shares of the result's channels. It computes
    all rows for one block of channels before the next, or with `inner_blocks` all blocks of a
    register tile's pixels. With the products `pairs` and `tiles`, `instruction` adds up
    neighbouring source channels; with `windows` neighbours among all elements that a row of taps
    reads. With `tiles` it multiplies tile registers of `tile_rows` pixels each. A source or result
    whose channels lie in front of its pixels has `source_images` or `result_images`; 0 is for one
    whose channels lie last. `rounding` is the instruction that rounds sums to the result's type, a
    key of ROUNDING_INSTRUCTIONS, or empty.
    """

    product: str
    columns: int
    vectors: int
    lanes: int
    rows: int
    shares: int
    inner_blocks: bool = False
    instruction: str = ""
    tile_rows: int = 0
    source_images: int = 0
    result_images: int = 0
    rounding: str = ""

    @cached_property
    def slides(self) -> tuple[Slide, Slide, Slide]:
        """How planes, rows and columns of the result read their source; one dimension is columns,
        two are rows and columns."""
        found = [one.slide(self.direction) for one in self.dimensions]
        plane, row, column = [Slide()] * (3 - len(found)) + found
        return plane, row, column.between(self.pads)

    @cached_property
    def pads(self) -> tuple[int, int]:
        """Pixels that rows of the source are lengthened by on either side: of a tile register none
        may be outside."""
        return (
            self.dimensions[-1].slide(self.direction).outside if self.product == TILES else (0, 0)
        )

    @property
    def source_rows(self) -> Rows:
        """The source as a copy of it reads it."""
        plane, row, column = self.slides
        pixels, rows = column.size - sum(self.pads), plane.size * row.size
        images = self.source_images or self.batch
        if rows * self.batch % images:  # rows that are of no image
            rows, pixels = 1, self.batch * rows * pixels // images
        else:
            rows = rows * self.batch // images
        return Rows(
            images=images, rows=rows, pixels=pixels, channels=self.source_pixel, pads=self.pads
        )

    @property
    def taps(self) -> tuple[int, int, int]:
        """Taps of the filter along planes, rows and columns."""
        plane, row, column = [1] * (3 - len(self.filter)) + list(self.filter)
        return plane, row, column

    @property
    def block(self) -> int:
        """Lanes of a register tile."""
        return self.vectors * self.lanes

    @property
    def source_pixel(self) -> int:
        """Elements of a pixel of the source."""
        return self.groups * self.sources

    @property
    def result_pixel(self) -> int:
        """Elements of a pixel of the result."""
        return self.groups * self.results

    @property
    def tail(self) -> int:
        """Lanes of a group's last vector that hold result channels, where one tile has all of the
        group's and not all lanes do; else 0."""
        has_tail = self.product in ("results", PAIRS, WINDOWS, TILES) and self.results < self.block
        return self.results % self.lanes if has_tail else 0
