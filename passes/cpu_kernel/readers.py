# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who reads a copy of an operand, and what that asks of its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conv_compiler.ir.loop_nest import Axis
from conv_compiler.passes.cpu_kernel.copy_sources import extent_of

# Elements of a block at least: shorter ones take too many stores.
LEAST_BLOCK = 4


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Who reads a copy.

    A register tile has `tile` iterations of each parallel loop and reads vectors of `lanes`.
    Without a tile nothing is known, and copies lie in one piece. `steps` are the iterations of
    summed loops that one instruction sums, where these are more than one.
    """

    tile: Mapping[str, int]
    lanes: int
    steps: Mapping[str, int] = field(default_factory=dict)

    def deep_block(self, axis: Axis) -> int:
        """Elements of the blocks of an innermost axis of pixels, of which each instruction sums
        one; 0 where it is not cut into such."""
        return self.steps.get(next(iter(axis)), 0) if list(axis.values()) == [1] else 0

    def block(self, axis: Axis, ranges: Mapping[str, int]) -> int:
        """Elements of the blocks that an innermost axis is cut into; 0 where it is not."""
        inner = [loop for loop, step in axis.items() if step == 1]
        if len(inner) != 1 or any(loop not in self.tile for loop in axis):
            return 0
        size, extent = self.tile[inner[0]], extent_of(axis, ranges)
        is_of_vectors = size % self.lanes == 0 or self.lanes % size == 0
        steps = [extent, *(step for step in axis.values() if step > 1)]
        fits = is_of_vectors and all(step % size == 0 for step in steps)
        return size if fits and LEAST_BLOCK <= size < extent else 0

    def may_join(self, inner: Axis, joined: Axis, ranges: Mapping[str, int]) -> bool:
        """Whether axes may be one axis without a block that the inner one would have."""
        return not self.block(inner, ranges) or self.block(joined, ranges) > 0

    def reads_one(self, axis: Axis) -> bool:
        """Whether a register tile reads a single element along an axis."""
        return bool(axis) and all(self.tile.get(loop, 0) == 1 for loop in axis)
