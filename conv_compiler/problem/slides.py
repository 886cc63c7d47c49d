# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which source pixels each result pixel of `fwd` and `bwd_data` reads, one dimension at a time.

Result pixels come in units of as many as there are phases: pixel j * phases + a is phase a of unit
j. It reads source pixels j * step + offset, one a tap; taps and offsets depend on its phase alone.

    fwd        1 phase         step = stride   offset = tap * dilation - pad
    bwd_data   stride phases   step = 1        offset = (a + pad - tap * dilation) / stride

with those taps alone whose offset is whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conv_compiler.problem.conv_problem import ConvProblem

_T = TypeVar("_T")


class Read(NamedTuple):
    """A filter tap and the source pixel it meets, from that of its unit."""

    tap: int
    offset: int


class Met(NamedTuple):
    """A tap of a phase that meets source row i * step + `row`, for unit i + `lag`."""

    row: int
    lag: int
    phase: int
    tap: int


# Units whose source pixels are counted one by one.
_LISTED_UNITS = 256


@dataclass(frozen=True, kw_only=True)
class Slide:
    """One dimension: `size` source pixels, `outs` result pixels, and what each phase reads.

    `window` has every tap of a forward pass, of which pads are a part, and of a data gradient those
    that meet a pixel of the source for any unit.
    """

    size: int = 1
    outs: int = 1
    step: int = 1
    window: tuple[tuple[Read, ...], ...] = ((Read(0, 0),),)

    @property
    def phases(self) -> int:
        """Result pixels of a unit."""
        return len(self.window)

    @property
    def is_plain(self) -> bool:
        """Whether the axis of the result is that of the source."""
        return self.window == (((0, 0),),) and self.step == 1 and self.units == self.size

    @property
    def units(self) -> int:
        """Units that hold all result pixels."""
        return -(-self.outs // self.phases)

    def reach(self, units: int) -> tuple[int, ...]:
        """Source pixels that so many adjacent units read, from that of the first one on."""
        return tuple(
            sorted(
                {
                    unit * self.step + read.offset
                    for unit in range(units)
                    for reads in self.window
                    for read in reads
                }
            )
        )

    def read(self, units: int) -> int:
        """How many source pixels so many adjacent units read, or a little more where they are
        many."""
        offsets = [read.offset for reads in self.window for read in reads]
        if not offsets:
            return 0
        if units <= _LISTED_UNITS:
            return len(self.reach(units))
        span = (units - 1) * self.step + max(offsets) - min(offsets) + 1
        return min(span, units * len(offsets))

    @property
    def outside(self) -> tuple[int, int]:
        """How many pixels in front of the source and behind it result pixels read."""
        read = [
            first * self.step + read.offset
            for phase, reads in enumerate(self.window)
            for read in reads
            for first in (0, -(-(self.outs - phase) // self.phases) - 1)
        ]
        return max(0, -min(read, default=0)), max(0, max(read, default=0) - self.size + 1)

    def between(self, pads: tuple[int, int]) -> Slide:
        """The same over a source with so many more pixels on either side."""
        front, behind = pads
        return replace(
            self,
            size=front + self.size + behind,
            window=tuple(
                tuple(Read(tap, offset + front) for tap, offset in reads) for reads in self.window
            ),
        )

    @property
    def meets(self) -> bool:
        """Whether any result pixel reads a source pixel."""
        for phase, reads in enumerate(self.window):
            count = -(-(self.outs - phase) // self.phases)
            for read in reads:
                first = max(0, -(read.offset // self.step))  # that reads no pixel in front
                if first < count and first * self.step + read.offset < self.size:
                    return True
        return False

    def met(self) -> tuple[Met, ...]:
        """The taps by the source row that they meet, rows in rising order."""
        found = []
        for phase, reads in enumerate(self.window):
            for tap, offset in reads:
                row = offset % self.step
                found.append(Met(row, (row - offset) // self.step, phase, tap))
        return tuple(sorted(found))

    @property
    def lags(self) -> tuple[int, int]:
        """The least and the greatest unit that reads a source row, from that of the row."""
        lags = [one.lag for one in self.met()] or [0]
        return min(lags), max(lags)

    @property
    def later(self) -> int:
        """Units beside the first that are begun before it is finished."""
        low, high = self.lags
        return high - low


@dataclass(frozen=True, kw_only=True)
class Spaced:
    """Sizes of one dimension of a convolution: input and output pixels, taps and their spacing."""

    image: int
    outs: int
    taps: int
    stride: int
    dilation: int
    pad: int

    def slide(self, direction: str) -> Slide:
        """How the result of `fwd` or `bwd_data` reads its source."""
        forward = direction == "fwd"
        size, outs = (self.image, self.outs) if forward else (self.outs, self.image)
        step, phases = (self.stride, 1) if forward else (1, self.stride)
        last = (-(-outs // phases) - 1) * step
        window = tuple(
            tuple(
                Read(tap, offset)
                for tap, offset in self._reads(forward, phase)
                if forward or (offset < size and offset + last >= 0)
            )
            for phase in range(phases)
        )
        return Slide(size=size, outs=outs, step=step, window=window)

    def _reads(self, forward: bool, phase: int) -> Iterator[tuple[int, int]]:
        for tap in range(self.taps):
            if forward:
                yield tap, tap * self.dilation - self.pad
                continue
            offset, rest = divmod(phase + self.pad - tap * self.dilation, self.stride)
            if not rest:
                yield tap, offset


def spaced(problem: ConvProblem) -> tuple[Spaced, ...]:
    """The dimensions of a problem, outermost first."""
    rows = zip(
        problem.image,
        problem.out_image,
        problem.filter,
        problem.stride,
        problem.dilation,
        problem.pad_low,
        strict=True,
    )
    return tuple(
        Spaced(image=image, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)
        for image, outs, taps, stride, dilation, pad in rows
    )


@lru_cache(maxsize=1024)
def slides(dimensions: tuple[Spaced, ...], direction: str) -> tuple[Slide, Slide, Slide]:
    """Those of depth, rows and columns; a missing one has one pixel and one tap."""
    depth, row, column = in_three([one.slide(direction) for one in dimensions], Slide())
    return depth, row, column


def in_three(dimensions: Sequence[_T], missing: _T) -> tuple[_T, _T, _T]:
    """Values of depth, rows and columns; a single dimension is that of rows, which slide."""
    if len(dimensions) == 1:
        return missing, dimensions[0], missing
    depth, row, column = [missing] * (3 - len(dimensions)) + list(dimensions)
    return depth, row, column


def even_sizes(units: int, most: int) -> tuple[tuple[int, int], ...]:
    """Units of a tile and how many such tiles there are, of those of `even_tiles`."""
    count = -(-units // most)
    small, larger = divmod(units, count)
    return ((small + 1, larger), (small, count - larger))


def even_tiles(units: int, most: int) -> Iterator[tuple[int, int]]:
    """First unit and units of each tile of a row: as few tiles as there can be, and even ones."""
    count = -(-units // most)
    first = 0
    for number in range(count):
        size = (units + count - 1 - number) // count
        yield first, size
        first += size
