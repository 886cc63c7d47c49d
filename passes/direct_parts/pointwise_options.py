# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pass `pointwise-kernel`, which its kernel reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.problem.convolution_sizes import ConvolutionSizes


@dataclass(frozen=True, kw_only=True)
class PointwiseOptions(ConvolutionSizes):
    """A register tile has the sums of `block` result channels by `vectors` of `lanes` pixels. A
    workgroup has one of `channel_shares` shares of a group's result channels, and one of
    `pixel_shares` of an image's pixels. `on_stack` tells whether a tile's source is copied.
    `instruction` multiplies several source channels at once; it is empty where vectors are
    multiplied and added. `rounding` rounds sums to the result's type: a key of
    ROUNDING_INSTRUCTIONS, or empty."""

    block: int
    vectors: int
    lanes: int
    channel_shares: int
    pixel_shares: int
    on_stack: bool = True
    instruction: str = ""
    rounding: str = ""

    def check(self) -> None:
        """UnsupportedStrategy where the numbers cut no whole shares."""
        rules = {
            "blocks and their shares divide the result channels": self.results
            % (self.block * self.channel_shares)
            == 0,
            "shares divide the pixels": self.pixels % self.pixel_shares == 0,
            "a share has a vector of pixels": self.pixels // self.pixel_shares >= self.lanes,
        }
        if broken := next((rule for rule, holds in rules.items() if not holds), ""):
            raise UnsupportedStrategy(
                f"tile {self.block}x{self.vectors * self.lanes}: {broken}; use another"
            )

    @property
    def pixels(self) -> int:
        """Of an image."""
        return math.prod(self.image)
