# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel that exchanges the last two axes of a tensor: wide reads, wide stores.

    forall workgroups, threads                                 a thread has a piece, s x r elements
      for each of its r: load s adjacent elements              copied[b, s, r] = source[b, r, s]
      for each of its s: store r adjacent elements             from registers

Lanes lie along r first, so that they store lines; then along (b, s), so that they load lines. The
last ones may have the same piece: they store the same elements.
"""

from __future__ import annotations

from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, vector

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.depthwise_parts.arithmetic import cut, in_32_bits, linear, number


class CopyShape(NamedTuple):
    """How a copy is shared: elements of a thread along `s` and `r`, `lanes` that lie side by side
    along r, and the `threads` of a workgroup. `s`, and `r` times `lanes`, divide their axes."""

    s: int
    r: int
    lanes: int
    threads: int


def transposed_copy(source: ir.Value, shape: CopyShape, role: str) -> ir.Value:
    """[b, s, r] of [b, r, s], by a kernel of its own that is tagged with the role."""
    return _Copy(source, shape).region(role)


class _Copy:
    """The kernel while it is written."""

    def __init__(self, source: ir.Value, shape: CopyShape) -> None:
        self.source, self.shape = source, shape
        self.outer, self.channels, self.inner = ops.shape_of(source)
        self.element = ops.element_of(source)
        self.strips = self.inner // shape.s
        self.rows = self.outer * self.strips
        self.rows_at_once = shape.threads // shape.lanes

    def region(self, role: str) -> ir.Value:
        """The dispatch region, and the view of its result as [b, s, r]."""
        shape = self.shape
        extents = [self.rows, shape.s, self.channels]
        region = dispatches.dispatch_region(ir.RankedTensorType.get(extents, self.element))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            flat = ops.merge_axes(self.source, 0, 3)
            out = tensor.EmptyOp(extents, self.element).result
            columns = self.channels // (shape.r * shape.lanes)
            blocks = [-(-self.rows // self.rows_at_once), columns]

            def a_thread(ids: list[ir.Value], out: ir.Value) -> Piece:
                block, column, thread = (in_32_bits(x) for x in ids)
                across, lane = cut(thread, (self.rows_at_once, shape.lanes))
                row = self.kept(linear(block, self.rows_at_once, across))
                channel = linear(linear(column, shape.lanes, lane), shape.r)
                offsets = [_index(row), 0, _index(channel)]
                sizes = [1, shape.s, shape.r]
                piece = slice_of(out, offsets, sizes, [shape.s, shape.r])
                return self.written(piece, self.loaded(flat, row, channel)), offsets, sizes

            mapping = ["#iree_codegen.workgroup_mapping<y>", "#iree_codegen.workgroup_mapping<x>"]

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                offsets = [0, 0, 0]
                made = forall(
                    (shape.threads,),
                    out,
                    ["#gpu.thread<linear_dim_0>"],
                    lambda inner, shared: a_thread([*ids, *inner], shared),
                )
                return made, offsets, extents

            made = forall(blocks, out, mapping, workgroup)
            made.owner.operation.attributes[ROLE] = ir.StringAttr.get(role)
            dispatches.dispatch_return(made)
        found: ir.Value = region.results[0]
        return ops.split_axis(ops.merge_axes(found, 0, 2), 0, (self.outer, self.inner))

    def kept(self, row: ir.Value) -> ir.Value:
        """The row, or the last one in place of one behind it."""
        if self.rows % self.rows_at_once == 0:
            return row
        return arith.MinUIOp(row, number(self.rows - 1)).result

    def loaded(self, flat: ir.Value, row: ir.Value, channel: ir.Value) -> list[ir.Value]:
        """A vector of s for each r."""
        shape, type = self.shape, ir.VectorType.get([self.shape.s], self.element)
        outer, strip = cut(row, (self.outer, self.strips))
        first = linear(linear(outer, self.channels, channel), self.inner, linear(strip, shape.s))
        map, zero = ir.AffineMap.get_minor_identity(1, 1), ops.zero(self.element)
        return [
            vector.TransferReadOp(
                type, flat, [_index(linear(first, 1, one * self.inner))], map, zero, [True]
            ).result
            for one in range(shape.r)
        ]

    def written(self, piece: ir.Value, columns: list[ir.Value]) -> ir.Value:
        """The piece with a vector of r for each s."""
        shape, map = self.shape, ir.AffineMap.get_minor_identity(2, 1)
        type = ir.VectorType.get([shape.r], self.element)
        for s in range(shape.s):
            value = vector.FromElementsOp(
                type, [vector.ExtractOp(one, [], [s]).result for one in columns]
            ).result
            at = [arith.ConstantOp(ir.IndexType.get(), x).result for x in (s, 0)]
            piece = vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result
        return piece


def _index(value: ir.Value) -> ir.Value:
    return arith.IndexCastOp(ir.IndexType.get(), value).result
