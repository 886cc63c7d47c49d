# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a kernel with the pixels of a row in the lanes (`passes/plane_kernel.py`): its tile, and
the rows and pixels that it copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.convolution_sizes import ConvolutionSizes
from conv_compiler.problem.slides import Read, Slide


@dataclass(frozen=True, kw_only=True)
class PlaneSizes(ConvolutionSizes):
    """A register tile has the sums of `block` result channels by `rows` rows by `vectors` of
    `lanes` adjacent result pixels of a plane: a group of an image.

    A workgroup has `rows_share` rows and one of `channel_shares` of the result channels of each of
    `planes_share` planes: those of adjacent groups and images. `instruction` multiplies two source
    channels at once; it is empty where vectors are multiplied and added.
    `rounding` rounds sums to the result's type: a key of ROUNDING_INSTRUCTIONS, or empty.
    """

    rows: int
    vectors: int
    lanes: int
    rows_share: int
    planes_share: int
    block: int = 1
    channel_shares: int = 1
    instruction: str = ""
    rounding: str = ""

    @cached_property
    def slides(self) -> tuple[Slide, Slide]:
        """How rows and columns of the result read their source; one dimension is columns."""
        row, column = [Slide()] * (2 - len(self.dimensions)) + [
            one.slide(self.direction) for one in self.dimensions
        ]
        return row, column

    def check(self) -> None:
        """UnsupportedStrategy where there is no kernel of these sizes."""
        flat = len(self.dimensions) <= 2
        rules = {
            "there are one or two dimensions": flat,
            "strides of a data gradient are one": self.direction == "fwd"
            or set(self.stride) == {1},
            "windows meet the image": not flat or all(one.meets for one in self.slides),
            "shares are whole": not flat
            or (
                self.slides[0].outs % self.rows_share == 0
                and self.batch * self.groups % self.planes_share == 0
                and self.results % (self.block * self.channel_shares) == 0
            ),
            "channels are pairs": self.sources % self.factors == 0,
        }
        if broken := next((rule for rule, holds in rules.items() if not holds), ""):
            raise UnsupportedStrategy(
                f"tile {self.block}x{self.rows}x{self.vectors * self.lanes}: {broken}; use another"
            )

    @property
    def factors(self) -> int:
        """Source channels that are multiplied at once."""
        return 2 if self.instruction else 1

    @property
    def steps(self) -> int:
        """Products of a tap: source channels, or pairs of them."""
        return self.sources // self.factors

    @property
    def is_depthwise(self) -> bool:
        """Whether groups have one channel. Registers then hold the weights."""
        return self.sources == self.results == 1

    @property
    def channels(self) -> int:
        """Result channels of a workgroup, in each of its planes."""
        return self.results // self.channel_shares

    def reads(self, axis: int) -> tuple[Read, ...]:
        """Taps along the rows (0) or columns (1), and how far their pixel is from the result's."""
        return self.slides[axis].window[0]

    def reach(self, axis: int) -> tuple[int, int]:
        """How far the first pixel and the last one that taps meet are from the result's."""
        offsets = [read.offset for read in self.reads(axis)]
        return min(offsets), max(offsets)

    @property
    def copied_rows(self) -> int:
        """Source rows of a channel that a workgroup's rows of a plane meet."""
        low, high = self.reach(0)
        return (self.rows_share - 1) * self.slides[0].step + 1 + high - low

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """Which columns are copied: those that taps meet, modulo the stride."""
        return tuple(sorted({read.offset % self.slides[1].step for read in self.reads(1)}))

    @property
    def front(self) -> int:
        """Where the first pixel of a source row lies in the copy of its phase."""
        return max(0, -(self.reach(1)[0] // self.slides[1].step))

    @property
    def phase_pixels(self) -> int:
        """Pixels of a phase of a copied row: pads in front, the source's, and zeros that the last
        vector meets."""
        _, column = self.slides
        behind = max(column.outs, self.lanes) + self.reach(1)[1] // column.step
        return max(self.front + max(-(-column.size // column.step), behind), self.lanes)

    @property
    def row_elements(self) -> int:
        """Elements of a copied row, phase after phase."""
        return len(self.phases) * self.phase_pixels

    @property
    def copied_elements(self) -> int:
        """Elements of the copy: steps, rows, phases, pixels."""
        return self.steps * self.copied_rows * self.row_elements

    @property
    def copied_lanes(self) -> int:
        """Pixels of a phase that are copied at once: a power of two, as many as a row has."""
        _, column = self.slides
        return max(1, min(self.lanes, 1 << (max(1, column.size // column.step).bit_length() - 1)))

    @property
    def taps(self) -> int:
        """Of the filter."""
        return math.prod(self.filter)

    def tile_rows(self, size: int) -> tuple[int, ...]:
        """Source rows that so many result rows meet, from the first one on."""
        low, step = self.reach(0)[0], self.slides[0].step
        return tuple(
            sorted({i * step + read.offset - low for i in range(size) for read in self.reads(0)})
        )
