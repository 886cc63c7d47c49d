# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a tile of the output gradient and of its window to LDS, in pieces of 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, linear
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import pointer, shares
from conv_compiler.passes.wgmma_parts.pixel_copies import copied_bytes, moved
from conv_compiler.passes.wgmma_parts.sizes import BYTES, ELEMENTS
from conv_compiler.passes.wgmma_parts.stores import store_vector, where

WORD = 4  # bytes


class Lines(NamedTuple):
    """Lines of LDS along an axis, and what they are copied from: an axis of so many pixels, `step`
    elements apart. A tile's first line is pixel number start * `stride` - `pad`, where `start` is
    its first output pixel. Lines have the pixels of each of `rests` by `rests` after one another.
    In LDS a line is `line_step` lines behind the one before.
    """

    lines: int
    line_step: int
    extent: int
    step: int
    stride: int = 1
    pad: int = 0
    rests: int = 1
    leaves: bool = True

    def found(self, start: ir.Value, line: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """The pixel of a line of the tile that starts there, and whether there is one."""
        if self.rests > 1:
            rest, place = cut(line, [self.rests, self.lines // self.rests])
            line = linear(place, self.rests, rest)
        pixel = linear(line, 1, linear(start, self.stride, -self.pad))
        return pixel, below(pixel, self.extent) if self.leaves else None


@dataclass(frozen=True, kw_only=True)
class TileCopy:
    """How the threads of a workgroup copy a tile of a tensor: its lines along the images and along
    each axis, and `planes` pieces of each pixel, in LDS `pitch` pieces apart.

    `shift` is where the first plane begins, in bytes behind the start of a stage.
    """

    memory: ir.Value
    axes: Sequence[Lines]
    planes: int
    pitch: int
    shift: int
    thread: ir.Value
    threads: int

    def start(self, lds: ir.Value, starts: Sequence[ir.Value], channel: ir.Value) -> None:
        """Start this thread's copies to a stage, of a tile whose first pixels are given, of
        channels from one on."""
        extents = [axis.lines for axis in self.axes]
        base = pointer(self.memory)
        for own, exists in shares(self.thread, math.prod(extents) * self.planes, self.threads):
            *places, piece = cut(own, [*extents, self.planes])
            at, tests = linear(piece, ELEMENTS, channel), list[ir.Value | None]()
            to = linear(piece, self.pitch * ptx.PIECE, lds)
            for axis, start, place in zip(self.axes, starts, places, strict=True):
                pixel, has = axis.found(start, place)
                at = linear(pixel, axis.step, at)
                to = linear(place, axis.line_step * ptx.PIECE, to)
                tests.append(has)
            with where(exists):
                size = copied_bytes(both(*tests))
                ptx.copy_piece(to, self.shift, moved(base, at, BYTES), 0, size)

    def clear(self, buffer: ir.Value, stage_shift: int, first: int, lines: int) -> None:
        """Write zeros to lines of each plane of a stage that no copy writes."""
        for own, exists in shares(self.thread, lines * self.planes, self.threads):
            plane, line = cut(own, [self.planes, lines])
            pieces = linear(plane, self.pitch, linear(line, 1, first))
            words = linear(pieces, ptx.PIECE // WORD, (stage_shift + self.shift) // WORD)
            with where(exists):
                store_vector([ops.zero(ir.F32Type.get())] * (ptx.PIECE // WORD), buffer, words)
