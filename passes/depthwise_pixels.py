# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a forward pass or data gradient of small groups as a kernel of vectors: sums of pixels.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places: pads, a weight arranged by phases, phases put in place, an elementwise op.
After, in one dispatch region:

    forall image, depth, rows, columns, channels                   workgroups
      forall thread = (image, strip down, strip across, lane)      threads
        filter[tap] = the filters of `vector` result channels      registers
        for source row of the strip                                some unrolled
          load its columns, once
          acc[unit, column] += row[column] * filter[tap]           by a product (`products.py`)
          result[finished unit] = epilogue(acc)                    whole vectors
          the other units are still open

A strip is `columns` x `rows` units of result pixels (`problem/slides.py`), so that taps are known
where the kernel is written: products by the zeros between strided pixels do not exist. What lies
outside of the source reads as zero, from an address inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    cut,
    in_32_bits,
    inside,
    linear,
)
from conv_compiler.passes.depthwise_parts.operands import find_operand, find_result
from conv_compiler.passes.depthwise_parts.options import PixelOptions
from conv_compiler.passes.depthwise_parts.pixels import Pixels, Place, Strip, threads_place
from conv_compiler.passes.depthwise_parts.sheet import Sheet
from conv_compiler.problem.slides import Slide, slides


@dataclass(frozen=True, kw_only=True)
class DepthwisePixels(PixelOptions):
    """The pass; its options are those of `PixelOptions`."""

    name: ClassVar[str] = "depthwise-pixels"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if it is not of the sizes in the options."""
        with module.context, ir.Location.unknown():
            nests = find_nests(module)
            if len(nests) != 1:
                raise UnsupportedStrategy(
                    f"module: {len(nests)} contractions; give it as it was built"
                )
            op = nests[0].op
            result = find_result(op.results[0])
            operands = find_operand(op.operands[0]), find_operand(op.operands[1])
            accumulator = ops.element_of(op.results[0])
            with ir.InsertionPoint(result.value.owner):
                kernel = Pixels(self, self.slides(), operands, result, accumulator)
                made = _Kernel(kernel).value()
            last = result.value.owner
            result.value.replace_all_uses_with(made)
            erase_if_dead(last)

    def slides(self) -> tuple[Slide, Slide, Slide]:
        """How the result reads its source: depth, rows, columns."""
        return slides(self.dimensions, self.direction)


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """An axis of the result: its extent, what a workgroup and a thread have of it."""

    extent: int
    workgroup: int
    thread: int

    @property
    def blocks(self) -> int:
        return -(-self.extent // self.workgroup)


class _Kernel:
    """The kernel while it is written: axes of the result are image, depth, row, column, group."""

    def __init__(self, kernel: Pixels) -> None:
        self.kernel = kernel
        options, row, column = kernel.options, kernel.row, kernel.column
        rows, columns = options.rows * row.phases, options.columns * column.phases
        depth = kernel.depth.phases
        self.axes = (
            _Axis(extent=options.batch, workgroup=options.images, thread=1),
            _Axis(extent=kernel.depth.outs, workgroup=depth, thread=depth),
            _Axis(extent=row.outs, workgroup=options.down * rows, thread=rows),
            _Axis(extent=column.outs, workgroup=options.across * columns, thread=columns),
            _Axis(
                extent=options.groups * options.results,
                workgroup=options.lanes * options.vector,
                thread=options.vector,
            ),
        )

    def value(self) -> ir.Value:
        """The result in the form in which the program has it."""
        result = self.kernel.result.value
        extents = [axis.extent for axis in self.axes]
        element = ops.element_of(result)
        region = dispatches.dispatch_region(ir.RankedTensorType.get(extents, element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(extents, element).result
            blocks = [axis.blocks for axis in self.axes]
            count = 1
            for one in blocks:
                count *= one

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                at = cut(in_32_bits(ids[0]), blocks)
                tiles = [axis.workgroup for axis in self.axes]
                first = [linear(x, tile) for x, tile in zip(at, tiles, strict=True)]
                box = [
                    _part(x, axis.extent, axis.workgroup)
                    for x, axis in zip(first, self.axes, strict=True)
                ]
                offsets, sizes = [one[0] for one in box], [one[1] for one in box]
                return self.workgroup(at, slice_of(out, offsets, sizes), sizes), offsets, sizes

            mapping = ["#iree_codegen.workgroup_mapping<x>"]
            made = forall((count,), out, mapping, workgroup)
            made.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            dispatches.dispatch_return(made)
        found: ir.Value = region.results[0]
        flat = ops.merge_axes(found, 0, len(extents))
        return ops.split_axis(flat, 0, ops.shape_of(result))

    def workgroup(
        self, at: Sequence[ir.Value], out: ir.Value, sizes: Sequence[ir.Value | int]
    ) -> ir.Value:
        """One workgroup's result pixels; `sizes` has an extent of each axis, of which `out` lacks
        those of 1."""
        options, kernel = self.kernel.options, self.kernel
        kept = [axis for axis, size in enumerate(sizes) if size != 1]

        def a_thread(ids: list[ir.Value], out: ir.Value) -> Piece:
            thread = in_32_bits(ids[0])
            lie = threads_place(options, thread, kernel.product.strips)
            real = lie.real
            # In units of a thread's part, from the workgroup's first.
            places = [lie.image, None, lie.down, lie.across, lie.lane]
            first = [
                linear(place, axis.thread) if place is not None else None
                for place, axis in zip(places, self.axes, strict=True)
            ]
            box = [
                _part(first[axis], sizes[axis], self.axes[axis].thread)
                if first[axis] is not None
                else (0, sizes[axis])
                for axis in kept
            ]
            offsets, extents = [one[0] for one in box], [one[1] for one in box]
            n = linear(at[0], options.images, lie.image)
            if self.axes[0].extent % options.images:
                test = below(n, self.axes[0].extent)
                real, n = both(real, test), inside(n, test)
            vectors = linear(at[4], options.lanes, lie.lane)
            channels = self.axes[4]
            if channels.extent % channels.workgroup:
                test = below(vectors, channels.extent // channels.thread)
                real, vectors = both(real, test), inside(vectors, test)
            top = linear(linear(at[2], options.down, lie.down), options.rows)
            left = linear(linear(at[3], options.across, lie.across), options.columns)
            channel = linear(vectors, options.vector)
            within = [axis for axis, extent in zip(kept, extents, strict=True) if extent != 1]

            def write(piece: ir.Value, value: ir.Value, place: Place) -> ir.Value:
                return _written(piece, value, [(0, *place, 0)[axis] for axis in within])

            strip = Strip(kernel, (n, at[1], top, left), channel, lie.place, real, write)
            piece = slice_of(out, offsets, extents)
            for phase in range(kernel.depth.phases):
                piece = Sheet(strip, phase).computed(piece)
            return piece, offsets, extents

        return forall((options.threads,), out, ["#gpu.thread<linear_dim_0>"], a_thread)


def _written(piece: ir.Value, value: ir.Value, at: Sequence[ir.Value | int]) -> ir.Value:
    """A piece with a vector at a place of its axes."""
    index = ir.IndexType.get()
    places = [
        arith.ConstantOp(index, x).result
        if isinstance(x, int)
        else arith.IndexCastOp(index, x).result
        for x in at
    ]
    if ir.VectorType(value.type).shape == [1] and len(ops.shape_of(piece)) == len(places):
        element = vector.ExtractOp(value, [], [0]).result
        return tensor.InsertOp(element, piece, places).result
    map = ir.AffineMap.get_minor_identity(len(places), 1)
    return vector.TransferWriteOp(piece.type, value, piece, places, map, [True]).result


def _part(
    first: ir.Value, extent: ir.Value | int, size: int
) -> tuple[ir.Value | int, ir.Value | int]:
    """Offset and size of a part of an axis, which the axis may cut short."""
    index = ir.IndexType.get()
    if isinstance(extent, int) and extent <= size:
        return 0, extent
    at = arith.IndexCastOp(index, first).result
    if size == 1 or (isinstance(extent, int) and extent % size == 0):
        return at, size
    if isinstance(extent, int):
        extent = arith.ConstantOp(index, extent).result
    left = arith.SubIOp(extent, at).result
    none, most = (arith.ConstantOp(index, x).result for x in (0, size))
    return at, arith.MaxSIOp(arith.MinSIOp(left, most).result, none).result
