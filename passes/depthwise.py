# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a depthwise contraction as a kernel of vectors: sums of all taps in registers.

Before: one linalg.generic with the loops (g, k = 1, taps, c = 1 | n, pixels).
After, in a dispatch region of its own, P[s, tap, g]:

    forall s, group block                                          workgroups
      forall thread = (strip of a round, groups side by side)      threads
        acc[tap] = 0                                               registers, f32 or i32
        for round                                                  strips of the part
          for output row of the strip
            load the rows of the image that are new to the window, and the strip's gradients
            acc[tap] += image[row, column] * gradient[column]      for every tap and column
        LDS[tap, thread] = acc[tap]
      forall (tap, groups)                                         threads
        P[s, tap, groups] = sum over the strips of a round         from LDS, in order

A strip is `columns` neighbouring output pixels of each of `rows` neighbouring output rows; its
images overlap in registers, so that each is loaded about once. What lies outside of the image or of
the output reads as zero, from an address inside. Behind the region is the sum over s: `reduction`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, tensor, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall, slice_of
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    cut,
    in_32_bits,
    inside,
    linear,
    times,
)
from conv_compiler.passes.depthwise_parts.options import StripOptions
from conv_compiler.passes.depthwise_parts.strips import Strips
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction, find_contraction
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import (
    apply_epilogue,
    find_epilogue,
    reduce_parts,
)


@dataclass(frozen=True, kw_only=True)
class Depthwise(StripOptions):
    """The pass; its options are those of `StripOptions`."""

    name: ClassVar[str] = "depthwise"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if it is not depthwise, channels last."""
        with module.context, ir.Location.unknown():
            conv = find_contraction(module)
            if conv.gemm_m * conv.channels != 1:
                raise UnsupportedStrategy("depthwise: groups of one channel only")
            epilogue = find_epilogue(conv.op)
            last = epilogue or conv.op
            with ir.InsertionPoint(last):
                partials = _Kernel(conv, self).region()
                weight = self._reduction(conv, epilogue, partials)
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)

    def _reduction(
        self, conv: Contraction, epilogue: ir.Operation | None, partials: ir.Value
    ) -> ir.Value:
        """The weight gradient from P[s, tap, g]."""
        taps = math.prod(conv.taps)
        partials = ops.leading(partials, [self.split_k, taps, conv.groups])
        region = dispatches.dispatch_region((epilogue or conv.op).results[0].type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            apart = ops.split_axis(partials, 1, conv.taps)
            read = [conv.weight_order.index(name) for name in (*conv.weight_loops[2:-1], "g")]
            weight = reduce_parts(apart, read, ops.shape_of(conv.op.results[0]))
            if epilogue is not None:
                weight = apply_epilogue(epilogue, weight)
            dispatches.dispatch_return(weight)
        result: ir.Value = region.results[0]
        return result


class _Kernel:
    """The kernel of one contraction while it is written."""

    def __init__(self, conv: Contraction, options: StripOptions) -> None:
        self.conv, self.options, self.strips = conv, options, Strips(conv, options)

    def region(self) -> ir.Value:
        """The dispatch region that computes P[s, tap, g], its groups a whole number of blocks."""
        options = self.options
        a_block = options.lanes * options.vector
        shape = [options.split_k, self.strips.taps, self.strips.blocks * a_block]
        region = dispatches.dispatch_region(ir.RankedTensorType.get(shape, self.conv.accumulator))
        dispatches.count_workgroups(region)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, self.conv.accumulator).result
            mapping = ["#iree_codegen.workgroup_mapping<y>", "#iree_codegen.workgroup_mapping<x>"]

            def workgroup(ids: list[ir.Value], out: ir.Value) -> Piece:
                block, part = ids
                offsets = [part, 0, times(block, a_block)]
                size = [1, self.strips.taps, a_block]
                piece = slice_of(out, offsets, size)
                return self.workgroup(part, block, piece), offsets, size

            result = forall((self.strips.blocks, options.split_k), out, mapping, workgroup)
            result.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            dispatches.dispatch_return(result)
        found: ir.Value = region.results[0]
        return found

    def workgroup(self, part: ir.Value, block: ir.Value, out: ir.Value) -> ir.Value:
        """One workgroup's sums, by way of LDS."""
        options = self.options
        shape = [self.strips.taps, options.threads * options.vector]
        shared = tensor.EmptyOp(shape, self.conv.accumulator).result
        part, block = (in_32_bits(x) for x in (part, block))
        mapping = ["#gpu.thread<linear_dim_0>"]

        def sums(ids: list[ir.Value], out: ir.Value) -> Piece:
            (thread,) = ids
            offsets = [0, times(thread, options.vector)]
            size = [self.strips.taps, options.vector]
            piece = slice_of(out, offsets, size)
            for tap, value in enumerate(self.strips.thread(part, block, thread)):
                piece = self.write(piece, value, tap)
            return piece, offsets, size

        shared = forall((options.threads,), shared, mapping, sums)
        items = self.strips.taps * options.lanes
        # One piece a loop: IREE's bufferization copies the second of two that it cannot tell apart.
        for first in range(0, items, options.threads):

            def total(ids: list[ir.Value], out: ir.Value, first: int = first) -> Piece:
                thread = in_32_bits(ids[0])
                return self.total(shared, out, linear(thread, 1, first), items)

            out = forall((options.threads,), out, mapping, total)
        return out

    def total(self, shared: ir.Value, out: ir.Value, item: ir.Value, items: int) -> Piece:
        """The sum of a tap and some groups over the strips of a round; of no tap past the last."""
        options = self.options
        real = below(item, items)
        count = arith.IndexCastUIOp(ir.IndexType.get(), real).result
        tap, lane = cut(inside(item, real), (self.strips.taps, options.lanes))
        tap, lane = (arith.IndexCastOp(ir.IndexType.get(), x).result for x in (tap, lane))
        found = self.strips.zeros(self.strips.summed)
        for strip in range(self.strips.together):
            shift = arith.ConstantOp(ir.IndexType.get(), strip * options.lanes).result
            found = self.strips.add(found, self.read(shared, tap, arith.AddIOp(lane, shift).result))
        offsets, size = [tap, times(lane, options.vector)], [count, options.vector]
        piece = slice_of(out, offsets, size)
        written = scf.IfOp(real, [piece.type], has_else=True)
        with ir.InsertionPoint(written.then_block):
            scf.YieldOp([self.write(piece, found, 0)])
        with ir.InsertionPoint(written.else_block):
            scf.YieldOp([piece])
        return written.results[0], offsets, size

    def write(self, piece: ir.Value, value: ir.Value, row: int) -> ir.Value:
        """A piece with the vector as one of its rows, or elements."""
        zero, first = (arith.ConstantOp(ir.IndexType.get(), at).result for at in (0, row))
        at = [first, zero][: len(ops.shape_of(piece))]
        map = ir.AffineMap.get_minor_identity(len(at), 1)
        return vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result

    def read(self, shared: ir.Value, tap: ir.Value, thread: ir.Value) -> ir.Value:
        """The sum of a tap that a thread left in LDS."""
        at = [tap, times(thread, self.options.vector)]
        map = ir.AffineMap.get_minor_identity(2, 1)
        zero = ops.zero(self.conv.accumulator)
        return vector.TransferReadOp(self.strips.summed, shared, at, map, zero, [True]).result
