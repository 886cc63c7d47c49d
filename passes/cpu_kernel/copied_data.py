# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a workgroup reads of an operand's tensor for a chunk, and whether it must be copied."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Index
from conv_compiler.passes.cpu_kernel.copy_sources import Source, extent_of
from conv_compiler.passes.cpu_kernel.products import Product
from conv_compiler.passes.cpu_kernel.readers import Reader
from conv_compiler.passes.pair_products import PAIR
from conv_compiler.targets.limits import DEINTERLEAVED_CHANNELS, LINE_BYTES, MOST_READS


@dataclass(frozen=True, kw_only=True)
class ChunkShape:
    """What both operands of a kernel are copied for.

    `ranges` are the iterations of each loop in a chunk; the last chunks of `uneven` loops have
    fewer. `summed` are the summed loops. `product` multiplies, and `reader` reads copies.
    """

    ranges: Mapping[str, int]
    uneven: Collection[str]
    summed: Collection[str]
    product: Product
    reader: Reader


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A tensor of the contraction: `index` says which element each iteration reads.

    `lanes` is the loop in the vector lanes. `reads` register tiles use each element.
    """

    value: ir.Value
    index: Index
    lanes: str
    reads: int


@dataclass(frozen=True, kw_only=True)
class CopiedData:
    """What of the tensor `value` a copy has, by axis of the tensor.

    `low` and `high` are the tensor's pads, `extents` the elements of the copy. A row is what lies
    along the last axis. `of_lanes` are the axes of the vector lanes; `transposed` is the first
    where it is not the last axis: rows of the copy are then columns of the tensor. `merged` is the
    tensor with that axis and the last one as one, where these are read so. `deep` is the length of
    the blocks of pixels that an instruction sums. Where `is_direct`, the tensor is read as it lies,
    and there is no copy.
    """

    value: ir.Value
    index: Index
    low: tuple[int, ...]
    high: tuple[int, ...]
    extents: tuple[int, ...]
    of_lanes: tuple[int, ...]
    transposed: int | None
    deep: int
    merged: ir.Value | None
    is_direct: bool

    @property
    def last(self) -> int:
        """The innermost axis."""
        return len(self.index) - 1

    @property
    def is_cut(self) -> bool:
        """Whether rows are copied in whole vectors, whose ends the next row overwrites."""
        return self.transposed is not None or self.low[-1] > 0

    @property
    def row_axes(self) -> tuple[int, ...]:
        """The axes of the tensor that a row in one piece of memory lies along."""
        return (self.last,) if self.merged is None else (self.last - 1, self.last)

    @property
    def row_elements(self) -> int:
        """Elements of such a row that are copied."""
        return math.prod(self.extents[axis] for axis in self.row_axes)


def data_of(operand: Operand, chunk: ChunkShape) -> CopiedData:
    """What a chunk reads of an operand, in rows as long as possible.

    Raises UnsupportedStrategy where the lanes are not adjacent in memory.
    """
    ranges, reader, lanes = chunk.ranges, chunk.reader, operand.lanes
    source = Source.of(operand.value, operand.index)
    rows = source.with_long_rows(ranges, lanes, lambda inner, joined: True)
    is_direct = _lies_ready(rows, operand, chunk)
    if not is_direct:
        rows = source.with_long_rows(
            ranges, lanes, lambda inner, joined: reader.may_join(inner, joined, ranges)
        )
    of_lanes = tuple(axis for axis, steps in enumerate(rows.index) if lanes in steps)
    last = len(rows.index) - 1
    transposed = of_lanes[0] if of_lanes and of_lanes[0] != last else None
    deep = reader.deep_block(rows.index[transposed]) if transposed is not None else 0
    found = CopiedData(
        value=rows.value,
        index=rows.index,
        low=rows.low,
        high=rows.high,
        extents=tuple(extent_of(axis, ranges) for axis in rows.index),
        of_lanes=of_lanes,
        transposed=transposed,
        deep=deep,
        merged=None,
        is_direct=is_direct,
    )
    found = _with_ends(found, operand, chunk)
    found = replace(found, merged=_merged(found, lanes in chunk.summed))
    apart = sum(found.index[axis][lanes] for axis in of_lanes)
    if of_lanes and apart != 1:
        raise UnsupportedStrategy(
            f"lanes {lanes}: {apart} elements apart in memory; order the loops"
        )
    return found


def _with_ends(data: CopiedData, operand: Operand, chunk: ChunkShape) -> CopiedData:
    """The data with what is read past the ends of rows and columns, as if these had pads."""
    extents, high = list(data.extents), list(data.high)

    def is_uneven(axis: int) -> bool:
        return any(loop in chunk.uneven for loop in data.index[axis])

    # A row is copied whole, past the end of a short tile.
    high[-1] += is_uneven(data.last)
    if (axis := data.transposed) is not None:
        if operand.lanes in chunk.summed and not data.deep:
            # Whole vectors are transposed; what they have past a short tile is not multiplied.
            missing = max(0, chunk.product.lanes - extents[axis])
            extents[axis] += missing
            high[axis] += missing
        high[axis] += is_uneven(axis)
    return replace(data, extents=tuple(extents), high=tuple(high))


def _lies_ready(source: Source, operand: Operand, chunk: ChunkShape) -> bool:
    """Whether the tensor itself may be read.

    It must have no pads, the type that is multiplied and the lanes innermost. Its rows must hold
    several pixels. A register tile must read whole lines or pixels. It must be read a few times at
    most.
    """
    *others, row = source.index
    reader, element = chunk.reader, ops.element_of(source.value)
    inner = [loop for loop, step in row.items() if step == 1 and loop in reader.tile]
    read = math.prod(reader.tile[loop] for loop in inner)
    by_lines = read * element.width >= 8 * LINE_BYTES
    return (
        (by_lines or all(read == chunk.ranges[loop] for loop in inner))
        and not any((*source.low, *source.high))
        and element == chunk.product.element
        and all(operand.lanes not in axis for axis in others)
        and any(loop in chunk.summed for loop in row)
        and not any(loop in chunk.uneven for loop in row)
        and operand.reads <= MOST_READS
    )


def _merged(data: CopiedData, of_pixels: bool) -> ir.Value | None:
    """The tensor with the axis of the lanes and the last one, which is short, as one axis.

    Whole vectors of it are deinterleaved into those of the copy. None where the data are not such.
    """
    if data.transposed != data.last - 1 or of_pixels or data.low[-1] or data.high[-1]:
        return None
    shape = ops.shape_of(data.value)
    *others, lanes, short = shape
    is_whole = data.extents[-1] == short and not data.low[data.transposed]
    has_pairs = any(PAIR in axis for axis in data.index[-2:])
    if not is_whole or short not in DEINTERLEAVED_CHANNELS or has_pairs:
        return None
    groups = [*([axis] for axis in range(len(others))), [data.transposed, data.last]]
    return ops.reshape(data.value, [*others, lanes * short], groups)
