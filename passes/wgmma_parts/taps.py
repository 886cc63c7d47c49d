# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The taps of a workgroup's phase: how many there are, and where each of them reads.

Of an axis the taps of a phase are evenly spaced, and so are the pixels that they meet. So a few
numbers of each phase tell all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import linear, number
from conv_compiler.problem.slides import Slide


class Evenly(NamedTuple):
    """The taps of one axis: of each phase their number, the first one and the source pixel that it
    meets; from each to the next."""

    counts: tuple[int, ...]
    taps: tuple[int, ...]
    offsets: tuple[int, ...]
    tap_step: int
    offset_step: int

    @classmethod
    def of(cls, slide: Slide) -> Evenly:
        """Those of a slide."""
        longest = max(slide.window, key=len)
        steps = {
            (b.tap - a.tap, b.offset - a.offset)
            for reads in slide.window
            for a, b in itertools.pairwise(reads)
        } or {(0, 0)}
        assert len(steps) == 1, longest
        ((tap_step, offset_step),) = steps
        firsts = [reads[0] if reads else (0, 0) for reads in slide.window]
        return cls(
            counts=tuple(map(len, slide.window)),
            taps=tuple(one[0] for one in firsts),
            offsets=tuple(one[1] for one in firsts),
            tap_step=tap_step,
            offset_step=offset_step,
        )


class Taps:
    """The taps of the phase at places `phase` of some axes, whose filters have `extents` taps."""

    def __init__(
        self, slides: Sequence[Slide], extents: Sequence[int], phase: Sequence[ir.Value]
    ) -> None:
        self.axes = [Evenly.of(slide) for slide in slides]
        self.extents = extents
        self.counts = [_of(phase[i], one.counts) for i, one in enumerate(self.axes)]
        self.firsts = [_of(phase[i], one.taps) for i, one in enumerate(self.axes)]
        self.offsets = [_of(phase[i], one.offsets) for i, one in enumerate(self.axes)]

    @property
    def count(self) -> int | ir.Value:
        """Taps of the phase."""
        known = [one for one in self.counts if isinstance(one, int)]
        found: int | ir.Value = math.prod(known)
        for one in self.counts:
            if not isinstance(one, int):
                found = linear(one, found) if isinstance(found, int) else _times(found, one)
        return found

    def at(self, tap: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        """The filter's tap that is the phase's number `tap`, and the source pixels from that of a
        unit to the one it meets, along each axis."""
        places = _cut(tap, self.counts)
        found, met = number(0), []
        for axis, at, first, offset, extent in zip(
            self.axes, places, self.firsts, self.offsets, self.extents, strict=True
        ):
            own = linear(at, axis.tap_step, _value(first))
            found = linear(found, extent, own)
            met.append(linear(at, axis.offset_step, _value(offset)))
        return found, met


def _of(phase: ir.Value, values: Sequence[int]) -> int | ir.Value:
    """What is a phase's, of what all have."""
    if len(set(values)) == 1:
        return values[0]
    found = number(values[0])
    for at, value in enumerate(values[1:], 1):
        test = arith.CmpIOp(arith.CmpIPredicate.eq, phase, number(at)).result
        found = arith.SelectOp(test, number(value), found).result
    return found


def _value(one: int | ir.Value) -> ir.Value:
    return number(one) if isinstance(one, int) else one


def _times(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.MulIOp(a, b).result


def _cut(value: ir.Value, counts: Sequence[int | ir.Value]) -> list[ir.Value]:
    """A number as one number an axis, outermost first."""
    found: list[ir.Value] = []
    outer = next((i for i, count in enumerate(counts) if count != 1), len(counts))
    for count in reversed(counts[outer + 1 :]):
        if count == 1:
            found.append(number(0))
            continue
        by = _value(count)
        found.append(arith.RemUIOp(value, by).result)
        value = arith.DivUIOp(value, by).result
    if outer < len(counts):
        found.append(value)
    return [*[number(0)] * outer, *reversed(found)]
