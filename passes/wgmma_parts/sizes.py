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
from conv_compiler.passes.wgmma_parts.instructions import INSTRUCTIONS, Instruction
from conv_compiler.passes.wgmma_parts.ptx import LINE, PIECE, SWIZZLED_LINES

# Channels of a row of LDS, and of a piece, of 16-bit types; bytes of one.
BLOCK, ELEMENTS, BYTES = 64, 8, 2
WAVE, WARP_GROUP = 32, 128  # threads
# Bytes of a pixel, of fewer than which a copy reads part of a line of memory alone.
FEW_BYTES = 64
STEP_BYTES = 32  # along gemm_k, of an instruction


def rounded_up(channels: int, piece: int = ELEMENTS) -> int:
    """Channels in whole pieces."""
    return -(-channels // piece) * piece


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """The tile (m, n, gemm_k) of a workgroup, those that share its m and its n, how many tiles LDS
    holds at a time, the parts of gemm_k, and the instruction. Wave groups share a tile where it is
    `wgmma`, `wgmma.s8` or `wgmma.f8`, waves where it is `mma.sync` or `mma.sync.tf32`."""

    tile_m: int
    tile_n: int
    tile_k: int
    groups_m: int
    groups_n: int
    stages: int
    split_k: int = 1
    instruction: str = "wgmma"

    @property
    def by(self) -> Instruction:
        """The instruction's row; UnsupportedStrategy for a name that is none."""
        if row := INSTRUCTIONS.get(self.instruction):
            return row
        known = ", ".join(INSTRUCTIONS)
        raise UnsupportedStrategy(
            f"instruction {self.instruction}: not in the table; known: {known}"
        )

    @property
    def element_bytes(self) -> int:
        """Bytes of an operand's element."""
        return self.by.element_bytes

    @property
    def block(self) -> int:
        """Channels of a line of LDS."""
        return LINE // self.element_bytes

    @property
    def piece(self) -> int:
        """Channels that a thread copies at a time."""
        return PIECE // self.element_bytes

    @property
    def step(self) -> int:
        """Extent of an instruction along gemm_k."""
        return STEP_BYTES // self.element_bytes

    @property
    def threads(self) -> int:
        """Of a workgroup."""
        return self.groups_m * self.groups_n * self.by.threads

    @property
    def rows(self) -> int:
        """Instructions along m of a wave group or wave."""
        return self.tile_m // self.groups_m // self.by.rows

    @property
    def columns(self) -> int:
        """Columns of a wave group, which one instruction has, or of a wave."""
        return self.tile_n // self.groups_n

    @property
    def lines_at_once(self) -> int:
        """Rows of LDS that all threads together copy at a time."""
        return self.threads // (LINE // PIECE)

    @property
    def stage_bytes(self) -> int:
        """LDS of one tile of both operands."""
        return (self.tile_m + self.tile_n) * self.line_bytes

    @property
    def stage_steps(self) -> tuple[int, int]:
        """Bytes of LDS from a tile of A to that of the next stage, and the same of B."""
        return self.stage_bytes, self.stage_bytes

    @property
    def block_bytes(self) -> int:
        """LDS of a tile of gemm_k of the channels of a line."""
        return self.tile_k * LINE

    @property
    def b_shift(self) -> int:
        """Bytes from a tile of A to that of B."""
        return self.tile_m * self.line_bytes

    @property
    def line_bytes(self) -> int:
        """Bytes of gemm_k of a row or column in a tile."""
        return self.tile_k * self.element_bytes

    def check(self) -> None:
        """UnsupportedStrategy where no kernel has such tiles."""
        by = self.by
        rules = {
            f"m is whole instructions of {by.rows} rows a {by.executor}": self.tile_m
            % (by.rows * self.groups_m),
            "gemm_k is what the threads copy at once, or a multiple": self.tile_k
            % self.lines_at_once,
            f"there are {by.stages_behind + 1} stages or more": self.stages <= by.stages_behind,
            "a line's place in the swizzle is the same each time": self.lines_at_once
            % SWIZZLED_LINES,
            **(self._group_rules() if by.is_asynchronous else self._wave_rules()),
        }
        for rule, broken in rules.items():
            if broken:
                raise UnsupportedStrategy(
                    f"tile {self.tile_m}x{self.tile_n}x{self.tile_k}: {rule}; use another"
                )

    def check_operand(self, operand: ir.Value) -> None:
        """UnsupportedStrategy where the instruction multiplies elements of another size."""
        element = ops.element_of(operand)
        if ops.bits_of(element) != 8 * self.element_bytes:
            raise UnsupportedStrategy(
                f"{self.instruction}: it multiplies elements of {self.element_bytes} bytes, and "
                f"the data are {element}; use another instruction"
            )

    def _group_rules(self) -> dict[str, bool]:
        return {
            "n is whole blocks of 64 channels a wave group": self.tile_n % (BLOCK * self.groups_n)
            > 0,
            "an instruction has 256 columns at most": self.columns > 256,
        }

    def _wave_rules(self) -> dict[str, bool]:
        own = self.tile_m // self.groups_m, self.columns
        return {
            f"m and n are whole blocks of {self.block} channels": (
                self.tile_m % self.block,
                self.tile_n % self.block,
            )
            != (0, 0),
            f"a wave has 16, 32 or whole blocks of {self.block} rows and columns": any(
                one not in (16, 32) and one % self.block for one in own
            ),
            f"gemm_k is whole steps of {self.step}": self.tile_k % self.step > 0,
            "a lane has 128 sums at most": self.rows * self.columns // 2 > 128,
        }


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
