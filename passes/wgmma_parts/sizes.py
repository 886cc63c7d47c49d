# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a kernel of wave groups: its tiles, and where elements of its operands lie in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts.ptx import LINE, PIECE, ROWS, SWIZZLED_LINES

# Channels of a row of LDS, and of a piece, of 16-bit types.
BLOCK, ELEMENTS = 64, 8
WARP_GROUP = 128
# Channels of a pixel of fewer than which a copy reads part of a line of memory alone.
LINE_CHANNELS = 32


def rounded_up(channels: int) -> int:
    """Channels in whole pieces."""
    return -(-channels // ELEMENTS) * ELEMENTS


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """The tile (m, n, gemm_k) of a workgroup, the wave groups that share its m and its n, how many
    tiles LDS holds at a time, and the parts of gemm_k."""

    tile_m: int
    tile_n: int
    tile_k: int
    groups_m: int
    groups_n: int
    stages: int
    split_k: int = 1

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.groups_m * self.groups_n * WARP_GROUP

    @property
    def rows(self) -> int:
        """Instructions along m of a wave group."""
        return self.tile_m // self.groups_m // ROWS

    @property
    def columns(self) -> int:
        """Columns of a wave group, which one instruction has."""
        return self.tile_n // self.groups_n

    @property
    def lines_at_once(self) -> int:
        """Rows of LDS that all threads together copy at a time."""
        return self.threads // (LINE // PIECE)

    @property
    def stage_bytes(self) -> int:
        """LDS of one tile of both operands."""
        return (self.tile_m + self.tile_n) // BLOCK * self.block_bytes

    @property
    def block_bytes(self) -> int:
        """LDS of a tile of gemm_k of 64 channels."""
        return self.tile_k * LINE

    @property
    def b_shift(self) -> int:
        """Bytes from a tile of A to that of B."""
        return self.tile_m // BLOCK * self.block_bytes

    def check(self) -> None:
        """UnsupportedStrategy where no kernel has such tiles."""
        rules = {
            "m is whole instructions of 64 rows a wave group": self.tile_m % (ROWS * self.groups_m),
            "n is whole blocks of 64 channels a wave group": self.tile_n % (BLOCK * self.groups_n),
            "gemm_k is what the threads copy at once, or a multiple": self.tile_k
            % self.lines_at_once,
            "threads store whole rows": self.threads * 4 % self.tile_n,
            "there are three stages or more": self.stages < 3,
            "an instruction has 256 columns at most": self.columns > 256,
            "a line's place in the swizzle is the same each time": self.lines_at_once
            % SWIZZLED_LINES,
        }
        for rule, broken in rules.items():
            if broken:
                raise UnsupportedStrategy(
                    f"tile {self.tile_m}x{self.tile_n}x{self.tile_k}: {rule}; use another"
                )


class Axis(NamedTuple):
    """A pixel axis of an operand: extents of the loop and of the operand, elements between pixels.

    Number `at` of the loop meets number at * stride + tap * dilation - pad of the operand.
    """

    loop: int
    extent: int
    step: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    taps: int = 1

    @property
    def leaves(self) -> bool:
        """Whether a window can leave the operand."""
        last = (self.loop - 1) * self.stride + (self.taps - 1) * self.dilation - self.pad
        return self.pad > 0 or last >= self.extent


@dataclass(frozen=True, kw_only=True)
class Operand:
    """Where an operand lies: its pixel axes, outermost first, and elements from group to group;
    channels are adjacent."""

    pixels: tuple[Axis, ...]
    group_step: int
    channels: int

    @property
    def is_row(self) -> bool:
        """Whether its pixels are one row, as gemm_k counts them."""
        step = self.pixels[-1].step
        for axis in reversed(self.pixels):
            plain = (axis.stride, axis.pad, axis.taps) == (1, 0, 1)
            if not plain or (axis.loop > 1 and axis.step != step):
                return False
            if axis.extent != axis.loop and axis is not self.pixels[0]:
                return False
            step = axis.step * axis.extent
        return True

    def merged(self, groups: int) -> Operand:
        """The operand whose groups are so many adjacent ones of this one."""
        if groups == 1:
            return self
        if self.group_step != self.channels:
            raise UnsupportedStrategy("wgmma-gemm: merged groups must be adjacent; merge none")
        channels = self.channels * groups
        return replace(self, group_step=channels, channels=channels)


def operands(conv: Contraction) -> tuple[Operand, Operand]:
    """Output gradient and image. UnsupportedStrategy where their channels are not adjacent."""
    a = _operand(conv.gradient, conv.gradient_axes, conv)
    b = _operand(conv.image, conv.image_axes, conv, is_image=True)
    return a, b


def _operand(
    value: ir.Value,
    axes: tuple[int, tuple[int, ...], int],
    conv: Contraction,
    is_image: bool = False,
) -> Operand:
    shape = ops.shape_of(value)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    group, space, channel = axes
    if steps[channel] != 1:
        raise UnsupportedStrategy("wgmma-gemm: channels must lie last; use another strategy")
    one = (1,) * len(space)
    strides, dilations, taps = (
        ((1, *x) for x in (conv.strides, conv.dilations, conv.taps))
        if is_image
        else (one, one, one)
    )
    pads = [conv.pad_low[axis] if is_image else 0 for axis in space]
    return Operand(
        pixels=tuple(
            Axis(loop, shape[axis], steps[axis], stride, dilation, pad, tap)
            for axis, loop, stride, dilation, pad, tap in zip(
                space, conv.pixels, strides, dilations, pads, taps, strict=True
            )
        ),
        group_step=steps[group],
        channels=shape[channel],
    )
