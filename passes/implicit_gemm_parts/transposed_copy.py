# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel that copies a tensor with its channels last: wide reads, wide stores.

    forall workgroups, threads                                 a thread has a piece, s x r elements
      for each of its r: load s adjacent elements              copied[b, s, r] = source[b, r, s]
      for each of its s: store r adjacent elements             from registers

Lanes lie along r first, so that they store lines; then along (b, s), so that they load lines. The
last ones may have the same piece: they store the same elements. Where a piece has all channels, it
is stored as one vector, with zeros behind each s if the copy has more channels; and the source may
have its channels last as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.depthwise_parts.arithmetic import cut, in_32_bits, linear, number


class CopyShape(NamedTuple):
    """How a copy is shared: elements of a thread along `s` and `r`, `lanes` that lie side by side
    along r, and the `threads` of a workgroup. `s`, and `r` times `lanes`, divide their axes. The
    copy has `padded` channels: those of the source, or more where `r` is all of these."""

    s: int
    r: int
    lanes: int
    threads: int
    padded: int


def channels_last(value: ir.Value, at: int, shape: CopyShape, role: str) -> ir.Value:
    """The tensor with its channels, axis `at`, behind all others: a view, or of a kernel of its own
    that is tagged with the role."""
    sizes = ops.shape_of(value)
    front, behind, channels = sizes[:at], sizes[at + 1 :], sizes[at]
    flat = ops.reshape(value, [math.prod(sizes)], [list(range(len(sizes)))])
    outer, inner = math.prod(front), math.prod(behind)
    if inner > 1 or shape.padded > channels:
        is_last = inner == 1
        source = (1, channels, outer) if is_last else (outer, channels, inner)
        flat = _Copy(flat, source, shape, is_last=is_last).region(role)
    return ops.split_axis(flat, 0, (*front, *behind, shape.padded))


class _Copy:
    """The kernel while it is written. The source is flat, and has [outer, channels, inner], or
    [inner, channels] with `is_last`."""

    def __init__(
        self, source: ir.Value, sizes: tuple[int, int, int], shape: CopyShape, *, is_last: bool
    ) -> None:
        self.source, self.shape, self.is_last = source, shape, is_last
        self.outer, self.channels, self.inner = sizes
        self.element = ops.element_of(source)
        self.strips = self.inner // shape.s
        self.rows = self.outer * self.strips
        self.rows_at_once = shape.threads // shape.lanes
        self.is_whole = shape.r == self.channels

    def region(self, role: str) -> ir.Value:
        """The dispatch region, and the view of its result as one axis."""
        shape = self.shape
        extents = [self.rows, shape.s, self.channels]
        if self.is_whole:
            extents = [self.rows, shape.s * shape.padded]
        region = dispatches.dispatch_region(ir.RankedTensorType.get(extents, self.element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(extents, self.element).result
            columns = self.channels // (shape.r * shape.lanes)
            blocks = [-(-self.rows // self.rows_at_once), columns]

            def a_thread(ids: list[ir.Value], out: ir.Value) -> Piece:
                block, column, thread = (in_32_bits(x) for x in ids)
                across, lane = cut(thread, (self.rows_at_once, shape.lanes))
                row = self.kept(linear(block, self.rows_at_once, across))
                channel = linear(linear(column, shape.lanes, lane), shape.r)
                loaded = self.loaded(row, channel)
                if self.is_whole:
                    piece = slice_of(out, [_index(row), 0], [1, extents[-1]], extents[-1:])
                    return self.written_whole(piece, loaded), [_index(row), 0], [1, extents[-1]]
                offsets, sizes = [_index(row), 0, _index(channel)], [1, shape.s, shape.r]
                piece = slice_of(out, offsets, sizes, [shape.s, shape.r])
                return self.written(piece, loaded), offsets, sizes

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                made = forall(
                    (shape.threads,),
                    out,
                    ["#gpu.thread<linear_dim_0>"],
                    lambda inner, shared: a_thread([*ids, *inner], shared),
                )
                return made, [0] * len(extents), extents

            mapping = ["#iree_codegen.workgroup_mapping<x>", "#iree_codegen.workgroup_mapping<y>"]
            made = forall(blocks, out, mapping, workgroup)
            made.owner.operation.attributes[ROLE] = ir.StringAttr.get(role)
            dispatches.dispatch_return(made)
        return ops.merge_axes(region.results[0], 0, len(extents))

    def kept(self, row: ir.Value) -> ir.Value:
        """The row, or the last one in place of one behind it."""
        if self.rows % self.rows_at_once == 0:
            return row
        return arith.MinUIOp(row, number(self.rows - 1)).result

    def loaded(self, row: ir.Value, channel: ir.Value) -> list[list[ir.Value]]:
        """The elements of a piece: for each r those along s."""
        shape = self.shape
        if self.is_last:
            found = self.load(linear(row, shape.s * shape.r), shape.s * shape.r)
            return [found[r :: shape.r] for r in range(shape.r)]
        outer, strip = cut(row, (self.outer, self.strips))
        first = linear(linear(outer, self.channels, channel), self.inner, linear(strip, shape.s))
        return [self.load(linear(first, 1, r * self.inner), shape.s) for r in range(shape.r)]

    def load(self, at: ir.Value, count: int) -> list[ir.Value]:
        """So many adjacent elements of the source."""
        map, zero = ir.AffineMap.get_minor_identity(1, 1), ops.zero(self.element)
        type = ir.VectorType.get([count], self.element)
        read = vector.TransferReadOp(type, self.source, [_index(at)], map, zero, [True]).result
        return [vector.ExtractOp(read, [], [one]).result for one in range(count)]

    def written(self, piece: ir.Value, elements: list[list[ir.Value]]) -> ir.Value:
        """The piece [s, r] with a vector of r for each s."""
        map = ir.AffineMap.get_minor_identity(2, 1)
        for s in range(self.shape.s):
            value = self.vector([one[s] for one in elements])
            at = [arith.ConstantOp(ir.IndexType.get(), x).result for x in (s, 0)]
            piece = vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result
        return piece

    def written_whole(self, piece: ir.Value, elements: list[list[ir.Value]]) -> ir.Value:
        """The piece [s x padded] as one vector."""
        zeros = [ops.zero(self.element)] * (self.shape.padded - self.channels)
        rows = [[*(one[s] for one in elements), *zeros] for s in range(self.shape.s)]
        value = self.vector([element for row in rows for element in row])
        map = ir.AffineMap.get_minor_identity(1, 1)
        at = [arith.ConstantOp(ir.IndexType.get(), 0).result]
        return vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result

    def vector(self, elements: list[ir.Value]) -> ir.Value:
        """A vector of these elements."""
        type = ir.VectorType.get([len(elements)], self.element)
        return vector.FromElementsOp(type, elements).result


def _index(value: ir.Value) -> ir.Value:
    return arith.IndexCastOp(ir.IndexType.get(), value).result
