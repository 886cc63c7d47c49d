# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which output pixels the input pixels of a strided data gradient meet, in one dimension.

Tap f joins input pixel j * stride + a and output pixel j + q, of phase a and offset q, where

    f * dilation - pad = a - q * stride

So each tap belongs to one phase and has one offset. What all of them meet is known without a list
of them, unless the image is shorter than the stride.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.errors import UnsupportedProblem

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

# Offsets listed one by one where the image is shorter than the stride: a third of a second.
MOST_LISTED = 2**19


@dataclass(frozen=True, kw_only=True)
class Line:
    """One spatial dimension of a problem, in elements."""

    size: int
    outs: int
    filter: int
    stride: int
    dilation: int
    pad: int

    @classmethod
    def of(cls, problem: ConvProblem, axis: int) -> Line:
        """That of one spatial dimension, outermost first."""
        return cls(
            size=problem.image[axis],
            outs=problem.out_image[axis],
            filter=problem.filter[axis],
            stride=problem.stride[axis],
            dilation=problem.dilation[axis],
            pad=problem.pad_low[axis],
        )

    @property
    def lowest(self) -> int:
        """Least offset of an output pixel from input pixel / stride that can be in the output."""
        return 1 - -(-self.size // self.stride)

    def tap(self, f: int) -> tuple[int, int]:
        """Offset and phase of a tap, whether or not there are such pixels."""
        quotient, phase = divmod(f * self.dilation - self.pad, self.stride)
        return -quotient, phase

    def taps_between(self, least: int, most: int) -> range:
        """Taps whose f * dilation - pad is from `least` to `most`."""
        first = max(0, -(-(least + self.pad) // self.dilation))
        last = min(self.filter - 1, (most + self.pad) // self.dilation)
        return range(first, max(first, last + 1))

    @property
    def reaching(self) -> range:
        """Taps whose offset can be in the output."""
        return self.taps_between((1 - self.outs) * self.stride, (1 - self.lowest) * self.stride - 1)


@dataclass(frozen=True, kw_only=True)
class Met:
    """What the taps of a line meet: how many `phases`, the `first` of them, and the offsets from
    `lowest` to `highest`, `step` apart (0 where there is one)."""

    phases: int = 0
    first: int = 0
    lowest: int = 0
    highest: int = 0
    step: int = 0

    @classmethod
    def of(cls, line: Line) -> Met:
        """Those of a line; all 0 where no tap meets an output pixel."""
        taps = line.reaching
        if not taps:
            return cls()
        if line.size < line.stride:
            return cls._of_pairs(_listed(line, taps))
        # Every phase has pixels, so every tap in reach counts, and they are evenly spaced.
        highest, first = line.tap(taps[0])
        lowest, _ = line.tap(taps[-1])
        period = line.stride // math.gcd(line.stride, line.dilation)
        phases = min(len(taps), period)
        return cls(
            phases=phases,
            first=first if phases == 1 else 0,
            lowest=lowest,
            highest=highest,
            step=_common_step(highest - lowest, len(taps) - 1, line.dilation // line.stride),
        )

    @classmethod
    def _of_pairs(cls, pairs: Iterator[tuple[int, int]]) -> Met:
        """Those of (offset, phase) pairs one by one."""
        offsets: set[int] = set()
        met: set[int] = set()
        for offset, phase in pairs:
            offsets.add(offset)
            met.add(phase)
        if not met:
            return cls()
        lowest = min(offsets)
        return cls(
            phases=len(met),
            first=min(met) if len(met) == 1 else 0,
            lowest=lowest,
            highest=max(offsets),
            step=math.gcd(*(offset - lowest for offset in offsets)),
        )


def _common_step(span: int, gaps: int, least: int) -> int:
    """The greatest common divisor of gaps that are each `least` or one more and make up `span`."""
    if span == gaps * least:
        return least if span else 0
    return least + 1 if span == gaps * (least + 1) else 1


def _listed(line: Line, taps: range) -> Iterator[tuple[int, int]]:
    """(offset, phase) of the taps that meet a pixel of an image shorter than the stride.

    Raises UnsupportedProblem where neither taps nor output pixels are few enough to be listed.
    """
    if len(taps) <= MOST_LISTED:
        found = map(line.tap, taps)
        return (one for one in found if one[1] < line.size)
    if line.outs > MOST_LISTED:
        raise UnsupportedProblem(
            f"stride {line.stride}: beyond an image of {line.size}, with {line.outs} output pixels "
            f"and {line.filter} taps, both more than {MOST_LISTED}; use a stride within the image"
        )
    return _by_output(line)


def _by_output(line: Line) -> Iterator[tuple[int, int]]:
    """`_listed`, an output pixel after another; of its taps two, for more are of more phases."""
    for offset in range(line.outs):
        start = -offset * line.stride
        for f in line.taps_between(start, start + line.size - 1)[:2]:
            yield line.tap(f)
