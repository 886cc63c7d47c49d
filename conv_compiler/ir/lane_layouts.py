# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the lanes of a subgroup hold the elements of a matrix instruction's operands."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from conv_compiler.errors import UnsupportedStrategy

FRAGMENTS = ("A", "B", "C")


@dataclass(frozen=True, kw_only=True)
class LaneLayout:
    """Where a lane's elements lie, dimension by dimension, as IREE's compiler describes it.

    A dimension is `outer` times `thread` times `element` long. Lane l holds position
    l // `strides` % `thread` of the middle part; 0 is for a part that all lanes hold.
    """

    outer: tuple[int, ...]
    thread: tuple[int, ...]
    strides: tuple[int, ...]
    element: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the operand."""
        parts = zip(self.outer, self.thread, self.element, strict=True)
        return tuple(math.prod(sizes) for sizes in parts)

    def positions(self, lane: int) -> list[tuple[int, ...]]:
        """The places in the operand of a lane's elements, in the order of its registers."""
        return [
            tuple(
                (o * size + (lane // stride % size if stride else 0)) * elements + e
                for o, size, stride, elements, e in zip(
                    outer, self.thread, self.strides, self.element, element, strict=True
                )
            )
            for outer in _indices(self.outer)
            for element in _indices(self.element)
        ]


def _indices(sizes: Sequence[int]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*map(range, sizes))


def lane_layouts(intrinsic: str) -> tuple[LaneLayout, LaneLayout, LaneLayout]:
    """Layouts of A (m, k), B (k, n) and the accumulators (m, n) of an instruction of that name.

    Source: IREE's `getSingleSubgroupLayout`. Raises UnsupportedStrategy for a name that IREE does
    not know.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import iree_gpu

    kind = getattr(iree_gpu.MMAIntrinsic, intrinsic, None)
    if kind is None:
        raise UnsupportedStrategy(
            f"instruction {intrinsic}: IREE describes no lanes of it; see list targets"
        )
    with ir.Context():
        attribute = iree_gpu.MMAIntrinsicAttr.get(kind)
        found = [iree_gpu.get_single_subgroup_layout(attribute, i) for i in range(3)]
    a, b, c = (
        LaneLayout(
            outer=tuple(one.outer),
            thread=tuple(one.thread),
            strides=tuple(one.tstrides),
            element=tuple(one.element),
        )
        for one in found
    )
    if c.element[0] == 2:
        # IREE groups registers by rows first; the hardware has all 16 registers of block 0 before
        # those of block 1 (MI300 ISA guide, layout of 32x32 with two blocks).
        c = LaneLayout(
            outer=(2, *c.outer[1:]),
            thread=c.thread,
            strides=c.strides,
            element=(1, *c.element[1:]),
        )
    return a, b, c
