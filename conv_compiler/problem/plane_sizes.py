# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a depthwise kernel with the pixels of a row in the lanes (`passes/plane_kernel.py`): its
tile, and the rows and pixels that it copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.convolution_sizes import ConvolutionSizes
from conv_compiler.problem.slides import Read, Slide


@dataclass(frozen=True, kw_only=True)
class PlaneSizes(ConvolutionSizes):
    """A register tile has the sums of `rows` rows by `vectors` of `lanes` adjacent result pixels of
    a plane. A workgroup has `rows_share` rows of each of `planes_share` planes: those of adjacent
    groups and images. `rounding` rounds sums to the result's type: a key of ROUNDING_INSTRUCTIONS,
    or empty."""

    rows: int
    vectors: int
    lanes: int
    rows_share: int
    planes_share: int
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
        rules = {
            "groups have one channel": self.sources == self.results == 1,
            "there are one or two dimensions": len(self.dimensions) <= 2,
            "strides are one": set(self.stride) == {1},
            "windows meet the image": len(self.dimensions) > 2
            or all(one.meets for one in self.slides),
            "shares are whole": len(self.dimensions) > 2
            or (
                self.slides[0].outs % self.rows_share == 0
                and self.batch * self.groups % self.planes_share == 0
            ),
        }
        if broken := next((rule for rule, holds in rules.items() if not holds), ""):
            raise UnsupportedStrategy(
                f"tile {self.rows}x{self.vectors * self.lanes}: {broken}; use another"
            )

    def reads(self, axis: int) -> tuple[Read, ...]:
        """Taps along the rows (0) or columns (1), and how far their pixel is from the result's."""
        return self.slides[axis].window[0]

    def reach(self, axis: int) -> tuple[int, int]:
        """How far the first pixel and the last one that taps meet are from the result's."""
        offsets = [read.offset for read in self.reads(axis)]
        return min(offsets), max(offsets)

    @property
    def copied_rows(self) -> int:
        """Source rows that a workgroup's rows of a plane meet."""
        low, high = self.reach(0)
        return self.rows_share + high - low

    @property
    def front(self) -> int:
        """Where the first pixel of a source row lies in its copy."""
        return max(0, -self.reach(1)[0])

    @property
    def row_pixels(self) -> int:
        """Pixels of a copied row: pads in front, the source's, and zeros that the last vector
        meets."""
        _, column = self.slides
        _, high = self.reach(1)
        last = max(column.outs, self.lanes) - 1 + high
        return self.front + max(column.size, last + 1) + self.lanes
