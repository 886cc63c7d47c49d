# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pixels of an image any tap meets: a filter of 1x1 with stride 2 meets a quarter of them.

A kernel reads no others. Memory brings whole cache lines, so pixels are left out along those
dimensions alone whose neighbours are in other lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem

# Bytes that memory brings together, as the counters of the virtual GPU have them.
LINE_BYTES = 128


class ReadImage(NamedTuple):
    """The image that a problem reads: its bytes, and those of the lines that its kernel reads."""

    bytes: int
    met_bytes: int


def met_share(problem: ConvProblem, line_bytes: int = LINE_BYTES) -> float:
    """The share of its image's bytes that a problem meets, in lines of so many bytes.

    1 gives the share of the pixels themselves.
    """
    met = 1.0
    for size, axis in zip(problem.image, range(problem.ndim), strict=True):
        if _apart(problem, axis) >= line_bytes:
            met *= _met_of(problem, axis) / size
    return met


def met_elements(problem: ConvProblem) -> float:
    """The elements of its image that a problem meets, in whole lines."""
    return math.prod(problem.input_shape) * met_share(problem)


def read_image(problem: ConvProblem) -> ReadImage | None:
    """The image that a problem reads and does not meet whole; None where there is none.

    Also where another of its tensors has the same size, for a buffer does not tell which it is, and
    where channels are not adjacent: kernels in front then rearrange the whole image.
    """
    if "input" not in problem.tensors[:2] or not problem.layout_row.grouped.input.endswith("C"):
        return None
    share, size = met_share(problem), problem.data_type.bytes_of
    whole = size(math.prod(problem.input_shape))
    others = math.prod(problem.output_shape), math.prod(problem.weight_shape)
    if share == 1 or whole in map(size, others):
        return None
    return ReadImage(bytes=whole, met_bytes=round(whole * share))


def _apart(problem: ConvProblem, axis: int) -> int:
    """Bytes from one pixel to the next along a spatial axis of the image."""
    inner = problem.layout_row.grouped.input.partition("*")[2]
    extents = {"N": problem.n, "C": problem.c, "G": problem.g}
    behind = math.prod(extents[letter] for letter in inner)
    return problem.data_type.bytes_of(behind * math.prod(problem.image[axis + 1 :]))


@dataclass(frozen=True)
class Steps:
    """`count` places, each `step` behind the one before it."""

    step: int
    count: int


def _met_of(problem: ConvProblem, axis: int) -> int:
    """Pixels of a spatial dimension that any tap meets."""
    taps = Steps(problem.dilation[axis], problem.filter[axis])
    outs = Steps(problem.stride[axis], problem.out_image[axis])
    return met_places(problem.image[axis], -problem.pad_low[axis], taps, outs)


def met_places(size: int, start: int, one: Steps, other: Steps) -> int:
    """How many of the places 0 to `size - 1` are `start + i * one.step + j * other.step`.

    Each place of `one` starts a run along `other`. Runs of one phase are counted together, and the
    phases one by one, in the order of the pair that has fewer.
    """
    common = math.gcd(one.step, other.step)
    if min(other.count, one.step // common) < min(one.count, other.step // common):
        one, other = other, one
    period = other.step // common
    met = 0
    for first in range(min(one.count, period)):
        place, phase = divmod(start + first * one.step, other.step)
        starts = Steps(one.step // common, -(-(one.count - first) // period))
        met += _covered(len(range(phase, size, other.step)), place, starts, other.count)
    return met


def _covered(size: int, start: int, starts: Steps, length: int) -> int:
    """How many of the places 0 to `size - 1` are in runs of `length` places."""
    if starts.step <= length:  # one run
        length += (starts.count - 1) * starts.step
        starts = Steps(length, 1)

    def below(end: int) -> int:
        behind = max(0, end - start)
        whole = min(behind // starts.step, starts.count)
        part = min(length, behind - whole * starts.step) if whole < starts.count else 0
        return whole * length + part

    return below(size) - below(0)
