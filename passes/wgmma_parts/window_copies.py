# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a window and of its weights to LDS, in pieces of 16 bytes.

LDS has the window in planes. A plane is one piece of each line. So eight adjacent lines of a plane
are what an instruction reads at once (128 bytes), wherever they begin.

The weights lie in the order of groups, taps and pieces of source channels. Eight result channels of
a piece are 128 bytes, in lines as memory has them. In a forward pass a line has the source channels
of the piece, in a data gradient eight result channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, linear, number
from conv_compiler.passes.wgmma_parts import ptx
from conv_compiler.passes.wgmma_parts.copies import pointer, shares
from conv_compiler.passes.wgmma_parts.pixel_copies import copied_bytes, moved
from conv_compiler.passes.wgmma_parts.sizes import BYTES, ELEMENTS
from conv_compiler.passes.wgmma_parts.stores import store_vector, where
from conv_compiler.passes.wgmma_parts.window_sizes import WindowSizes

WORD = 4  # bytes


class Corner(NamedTuple):
    """The first image and the first units (depth, row, column) of a tile."""

    image: ir.Value
    units: Sequence[ir.Value]


def copy_window(
    sizes: WindowSizes,
    memory: ir.Value,
    lds: ir.Value,
    thread: ir.Value,
    corner: Corner,
    group: ir.Value,
) -> None:
    """Start this thread's copies of a tile's window, of the merged groups number `group`."""
    tile, planes = sizes.tile, sizes.tile.planes
    extents = [tile.images]
    for span in tile.spans:
        extents += [span.rests, span.places]
    pixel = sizes.groups * sizes.sources
    lines = [slide.size for slide in tile.slides]
    steps = [pixel * math.prod(lines[at:]) for at in range(len(lines) + 1)]
    firsts = [
        linear(unit, span.step, span.origin)
        for unit, span in zip(corner.units, tile.spans, strict=True)
    ]
    base = pointer(memory)
    for own, exists in shares(thread, tile.lines * planes, sizes.threads):
        line, piece = cut(own, [tile.lines, planes])
        image, *places = cut(line, extents)
        tests = [exists]
        if sizes.batch % tile.images:
            tests.append(below(linear(image, 1, corner.image), sizes.batch))
        channel = linear(group, sizes.tile.block, linear(piece, ELEMENTS))
        at = linear(linear(image, 1, corner.image), steps[0], channel)
        pairs = zip(places[::2], places[1::2], strict=True)
        for (rest, place), first, span, slide, step in zip(
            pairs, firsts, tile.spans, tile.slides, steps[1:], strict=True
        ):
            own_pixel = linear(place, span.step, linear(rest, 1, first))
            tests.append(below(own_pixel, slide.size))
            at = linear(own_pixel, step, at)
        to = linear(piece, sizes.tile.plane * ptx.PIECE, linear(line, ptx.PIECE, lds))
        with where(exists):
            size = copied_bytes(both(*tests[1:]))
            ptx.copy_piece(to, 0, moved(base, at, BYTES), 0, size)


def clear_last_weights(sizes: WindowSizes, lds: ir.Value, at: int, thread: ir.Value) -> None:
    """Write the zeros behind the weights. `lds` has words, the weights begin at byte `at`."""
    tile = sizes.tile
    behind = at + tile.weight_bytes - tile.piece_bytes
    zero, words = ops.zero(ir.F32Type.get()), ptx.PIECE // WORD
    for own, exists in shares(thread, sizes.results, sizes.threads):
        with where(exists):
            store_vector([zero] * words, lds, linear(own, words, behind // WORD))


def copy_weights(
    sizes: WindowSizes, memory: ir.Value, lds: ir.Value, thread: ir.Value, group: ir.Value
) -> None:
    """Start this thread's copies of the weights of all taps, in the order in which they lie in
    memory."""
    tile, steps, forward = sizes.tile, sizes.weights, sizes.direction == "fwd"
    base = moved(pointer(memory), linear(group, steps.group * sizes.merged_groups), BYTES)
    across, along = (sizes.results, sizes.sources) if forward else (sizes.sources, sizes.results)
    taps = math.prod(sizes.filter)
    extents = [sizes.merged_groups, across, taps, along // ELEMENTS]
    for own, exists in shares(thread, math.prod(extents), sizes.threads):
        of, other, tap, eight = cut(own, extents)
        own_steps = (steps.result, steps.source) if forward else (steps.source, steps.result)
        at = linear(of, steps.group, linear(tap, steps.tap))
        at = linear(other, own_steps[0], linear(eight, ELEMENTS * own_steps[1], at))
        piece, line, column = eight, other, None
        if not forward:
            piece, line = cut(other, [tile.pieces, ELEMENTS])
            column = eight
        place = linear(tap, -1, taps - 1) if tile.is_falling else tap
        place = linear(of, tile.group_pieces, linear(place, tile.pieces, piece))
        to = linear(place, tile.piece_bytes, linear(line, ptx.PIECE, lds))
        if column is not None:
            to = linear(column, ELEMENTS * ptx.PIECE, to)
        with where(exists):
            ptx.copy_piece(to, 0, moved(base, at, BYTES), 0, number(ptx.PIECE))
