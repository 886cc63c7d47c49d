# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the elements of an operand's copy lie: strides, blocks and the order of its axes.

What one register tile reads of a copy lies together. The innermost axis is cut into blocks as long
as a register tile, which are outermost. Else lines of the cache that lie a power of two apart would
drive each other out. All functions are pure: they compute with numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from conv_compiler.ir.loop_nest import Index
from conv_compiler.passes.cpu_kernel.readers import Reader


@dataclass(frozen=True, kw_only=True)
class CopyShape:
    """What a copy holds, by axis of the tensor.

    `index` says what each iteration reads along an axis, `lengths` how many elements the copy has.
    `of_lanes` are the axes of the vector lanes. `transposed` is the first of these where it is not
    the last axis: rows of the copy are then columns of the tensor. `deep` is the length of the
    blocks of what an instruction sums, 0 for none. Where `is_direct` the tensor itself is read.
    Where `is_cut`, rows are written in whole vectors, whose ends the next row overwrites; `ends`
    tells whether the last vector of the copy may have such an end. `vector` is its elements.
    """

    index: Index
    lengths: tuple[int, ...]
    of_lanes: tuple[int, ...]
    transposed: int | None
    deep: int
    is_direct: bool
    is_cut: bool
    ends: bool
    vector: int

    @property
    def last(self) -> int:
        """The innermost axis of the tensor."""
        return len(self.index) - 1


@dataclass(frozen=True, kw_only=True)
class CopyLayout:
    """Where elements lie in a copy.

    The innermost axis of the copy, `inner`, is cut into `blocks` of `block` elements, with room for
    `wide`. Each begins `pitch` elements behind the one before. `strides` are those of the other
    axes, inside of a block. `around` are the axes around a row, in the order in which rows are
    copied. Where a transposed row lies in blocks too, these have `rows` elements and begin
    `rows_apart` elements behind one another; else `rows` is 0. `steps` are elements from one
    iteration of a loop to the next.
    """

    inner: int
    around: tuple[int, ...]
    block: int
    blocks: int
    wide: int
    strides: Mapping[int, int]
    rows: int
    rows_apart: int
    pitch: int
    steps: Mapping[str, int]

    @property
    def length(self) -> int:
        """Elements of the whole copy."""
        return self.blocks * self.pitch

    def place(self, element: int) -> int:
        """Address in the copy of an element of its innermost axis."""
        if self.blocks == 1:
            return element
        return element // self.block * self.pitch + element % self.block


def layout_of(shape: CopyShape, ranges: Mapping[str, int], reader: Reader) -> CopyLayout:
    """The layout that suits a reader of a copy for tiles of `ranges` iterations of each loop."""
    axes = _order(shape, reader)
    *outer, inner = axes.all
    block = _block(shape, inner, ranges, reader)
    wide = shape.vector if shape.deep else block
    # What is transposed lies in blocks of the rows of a tile, too.
    rows = reader.block(shape.index[-1], ranges) if shape.deep else 0
    strides, rows_apart = _strides(shape, axes.all, wide, rows)
    pitch = _pitch(shape, block, wide, rows_apart * _row_blocks(shape, rows))
    blocks = shape.lengths[inner] // block
    # Rows are copied as they lie in memory; cut ones in the order of the copy.
    around = outer if shape.is_cut else axes.without_lanes
    layout = CopyLayout(
        inner=inner,
        around=tuple(axis for axis in around if axis not in (shape.last, inner)),
        block=block,
        blocks=blocks,
        wide=wide,
        strides=strides,
        rows=rows,
        rows_apart=rows_apart,
        pitch=pitch,
        steps={},
    )
    return _with_steps(layout, shape)


class _Order(NamedTuple):
    """The axes of a copy, outermost first; and of the tensor those that are not of the lanes."""

    all: list[int]
    without_lanes: list[int]


def _order(shape: CopyShape, reader: Reader) -> _Order:
    """Axes of which a register tile reads single elements are outermost, those of lanes inner."""
    axes = [axis for axis in range(len(shape.lengths)) if axis not in shape.of_lanes]
    alone = [
        axis
        for axis in axes
        if axis != shape.last and not shape.is_direct and reader.reads_one(shape.index[axis])
    ]
    return _Order([*alone, *(axis for axis in axes if axis not in alone), *shape.of_lanes], axes)


def _block(shape: CopyShape, inner: int, ranges: Mapping[str, int], reader: Reader) -> int:
    """Elements of a block of the innermost axis; all of them where it is not cut."""
    if shape.deep:
        return shape.deep
    whole = shape.lengths[inner]
    if shape.is_direct or (shape.transposed is None and shape.is_cut):
        return whole
    return reader.block(shape.index[inner], ranges) or whole


def _row_blocks(shape: CopyShape, rows: int) -> int:
    """Blocks that a transposed row is cut into."""
    return shape.lengths[shape.last] // rows if rows else 1


class _Strides(NamedTuple):
    """The stride of each axis, and the elements of all of them together."""

    strides: dict[int, int]
    length: int


def _strides(shape: CopyShape, order: list[int], wide: int, rows: int) -> _Strides:
    """Each axis is as far apart as all inside of it is long; rows in blocks come innermost."""
    *outer, inner = order
    strides, length = {inner: 1}, wide
    if rows:
        strides[shape.last] = length
        length *= rows
        outer.remove(shape.last)
    for axis in reversed(outer):
        strides[axis] = length
        length *= shape.lengths[axis]
    return _Strides(strides, length)


def _pitch(shape: CopyShape, block: int, wide: int, length: int) -> int:
    """Elements from block to block: `length`, and room for the end of the last row's vector."""
    each = wide if shape.transposed is not None else 1
    room = (shape.vector - 1) * each if shape.ends else 0
    multiple = math.lcm(block, shape.vector) if shape.deep else 1
    return -(-(length + room) // multiple) * multiple


def _with_steps(layout: CopyLayout, shape: CopyShape) -> CopyLayout:
    """The layout with the elements from one iteration of each loop to the next."""
    steps: dict[str, int] = {}
    for axis, loops in enumerate(shape.index):
        for loop, step in loops.items():
            apart = layout.strides[axis]
            if axis == layout.inner and layout.blocks > 1:
                apart = layout.pitch // layout.block  # a tile begins with a block
            if axis == shape.last and layout.rows:
                apart = layout.rows_apart // layout.rows
            steps[loop] = steps.get(loop, 0) + step * apart
    return replace(layout, steps=steps)
