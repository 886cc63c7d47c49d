# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lies in the lanes of direct kernels on the CPU, and how well it fills them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from conv_compiler.problem.slides import Slide, spaced
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import DIRECT

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.processors import Processor


@dataclass(frozen=True, kw_only=True)
class DirectLanes:
    """A problem of `fwd` or `bwd_data`, what lies in its lanes, and the CPU."""

    problem: ConvProblem
    product: str
    processor: Processor

    @cached_property
    def slides(self) -> tuple[Slide, Slide, Slide]:
        """Those of planes, rows and columns."""
        found = [one.slide(self.problem.direction) for one in spaced(self.problem)]
        plane, row, column = [Slide()] * (3 - len(found)) + found
        return plane, row, column

    @property
    def planes(self) -> int:
        """Planes of result pixels of all images; a workgroup has rows of one."""
        return self.problem.n * self.slides[0].outs

    @property
    def native(self) -> int:
        """Sums in a register."""
        return self.processor.unit.lanes * 4 // self.problem.accumulator_type.bytes

    @property
    def neighbours(self) -> int:
        """Source channels that are multiplied at once."""
        return 1

    @property
    def instruction_name(self) -> str:
        """The instruction of a tiling; empty where vectors are multiplied and added."""
        return ""

    @property
    def element_bytes(self) -> int:
        """Of an element as it is multiplied."""
        return self.problem.accumulator_type.bytes // self.neighbours

    @property
    def has_results(self) -> bool:
        """Whether result channels lie in the lanes of vectors."""
        return self.product in ("results", "pairs", "windows")

    @property
    def lane_channels(self) -> int:
        """Channels, or groups, that the lanes are taken from."""
        sources, results = channels(self.problem)
        return {"groups": self.problem.g, "sources": sources}.get(self.product, results)

    @property
    def lanes(self) -> int:
        """Lanes of a vector: a register of them, or fewer where there are fewer channels."""
        if self.has_tail:
            return self.native
        channels, native = self.lane_channels, self.native
        if self.product == "sources":
            return math.gcd(channels, native)
        return min(native, 1 << (channels.bit_length() - 1))

    @property
    def has_tail(self) -> bool:
        """Whether one register tile has all result channels of a group, and its last vector is not
        full."""
        channels, native = self.lane_channels, self.native
        odd = self.has_results and channels % native > 0 and native % channels > 0
        return odd and -(-channels // native) <= DIRECT.most_tail_registers

    @property
    def overlaps(self) -> bool:
        """Whether vectors are no whole number of the channels, so that the last tile of a group's
        begins earlier."""
        return not self.has_tail and self.lane_channels % self.lanes > 0
