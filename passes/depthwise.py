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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, tensor, vector
from iree.compiler.dialects import math as math_dialect

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.loop_nest import erase_if_dead
from conv_compiler.passes.contraction import Contraction, find_contraction
from conv_compiler.passes.weight import apply_epilogue, find_epilogue, reduce_parts
from conv_compiler.schedule import ROLE


@dataclass(frozen=True, kw_only=True)
class Depthwise:
    """Options: groups of a thread, output columns and rows of a strip, rows of a trip of its loop,
    threads side by side along the groups, threads of a workgroup, and parts of the sum."""

    name: ClassVar[str] = "depthwise"
    vector: int
    columns: int
    rows: int
    unroll: int
    lanes: int
    threads: int
    split_k: int = 1

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
        region = ops.dispatch_region((epilogue or conv.op).results[0].type)
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            apart = ops.split_axis(partials, 1, conv.taps)
            weight = reduce_parts(conv, apart, self.split_k, (*conv.weight_loops[2:-1], "g"))
            if epilogue is not None:
                weight = apply_epilogue(epilogue, weight)
            ops.dispatch_return(weight)
        result: ir.Value = region.results[0]
        return result


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """One spatial dimension; a missing one has a size and a filter of 1."""

    size: int = 1
    outs: int = 1
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0


class _Kernel:
    """The kernel of one contraction while it is written."""

    def __init__(self, conv: Contraction, options: Depthwise) -> None:
        self.conv, self.options = conv, options
        spatial = [
            _Axis(size=size, outs=outs, taps=taps, stride=stride, dilation=dilation, pad=pad)
            for size, outs, taps, stride, dilation, pad in zip(
                conv.image_pixels[1:],
                conv.pixels[1:],
                conv.taps,
                conv.strides,
                conv.dilations,
                (conv.pad_low[axis] for axis in conv.image_axes[1][1:]),
                strict=True,
            )
        ]
        self.depth, self.row, self.column = [_Axis()] * (3 - len(spatial)) + spatial
        self.i32 = ir.IntegerType.get_signless(32)
        self.index = ir.IndexType.get()
        self.image, self.gradient = _flat(conv.image), _flat(conv.gradient)
        self.type = ops.element_of(conv.image)
        self.is_integer = isinstance(self.type, ir.IntegerType)
        vector_of = options.vector
        self.loaded = ir.VectorType.get([vector_of], self.type)
        self.summed = ir.VectorType.get([vector_of], conv.accumulator)
        self.taps = math.prod(conv.taps)
        self.vectors = conv.groups // vector_of
        self.blocks = -(-self.vectors // options.lanes)
        self.together = options.threads // options.lanes  # strips of a round
        self.segments = -(-self.row.outs // options.rows)
        self.across = -(-self.column.outs // options.columns)
        self.strips = conv.pixels[0] * self.depth.outs * self.segments * self.across
        self.rounds = -(-self.strips // (options.split_k * self.together))
        # Columns of the image a strip's row reads, from its first window's first on.
        self.reach = sorted(
            {
                u * self.column.stride + x * self.column.dilation
                for u in range(options.columns)
                for x in range(self.column.taps)
            }
        )
        # Rows of a window that are its next one's too: tap y + shift is the next one's tap y.
        self.shift, rest = divmod(self.row.stride, self.row.dilation)
        self.kept = 0 if rest else max(0, self.row.taps - self.shift)

    # Arithmetic in 32 bits.
    def const(self, value: int) -> ir.Value:
        return arith.ConstantOp(self.i32, ir.IntegerAttr.get(self.i32, value)).result

    def linear(self, value: ir.Value, factor: int, term: ir.Value | int = 0) -> ir.Value:
        """value * factor + term."""
        scaled = arith.MulIOp(value, self.const(factor)).result if factor != 1 else value
        if isinstance(term, int):
            return arith.AddIOp(scaled, self.const(term)).result if term else scaled
        return arith.AddIOp(scaled, term).result

    def cut(self, value: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
        """A linear index as one index an axis, outermost first; the first is not bounded."""
        found: list[ir.Value] = []
        for size in reversed(sizes[1:]):
            found.append(arith.RemUIOp(value, self.const(size)).result)
            value = arith.DivUIOp(value, self.const(size)).result
        return [value, *reversed(found)]

    def below(self, value: ir.Value, size: int) -> ir.Value:
        """Whether 0 <= value < size."""
        return arith.CmpIOp(arith.CmpIPredicate.ult, value, self.const(size)).result

    def both(self, *tests: ir.Value | None) -> ir.Value | None:
        """All tests together; None stands for true."""
        found: ir.Value | None = None
        for test in tests:
            if test is not None:
                found = test if found is None else arith.AndIOp(found, test).result
        return found

    def inside(self, value: ir.Value, test: ir.Value | None) -> ir.Value:
        """The value, or 0 where the test fails."""
        return value if test is None else arith.SelectOp(test, value, self.const(0)).result

    def load(self, source: ir.Value, at: ir.Value, test: ir.Value | None) -> ir.Value:
        """The vector at an element's address, or zeros where the test fails."""
        at = arith.IndexCastOp(self.index, at).result
        map = ir.AffineMap.get_identity(1)
        value = vector.TransferReadOp(
            self.loaded, source, [at], map, ops.zero(self.type), [True]
        ).result
        if test is not None:
            value = arith.SelectOp(test, value, self.zeros(self.loaded)).result
        return value if self.is_integer else self.widened(value)

    def zeros(self, type: ir.Type) -> ir.Value:
        vector_type = ir.VectorType(type)
        element = vector_type.element_type
        zero = (
            ir.IntegerAttr.get(element, 0)
            if isinstance(element, ir.IntegerType)
            else ir.FloatAttr.get(element, 0.0)
        )
        return arith.ConstantOp(type, ir.DenseElementsAttr.get_splat(type, zero)).result

    # The kernel.
    def region(self) -> ir.Value:
        """The dispatch region that computes P[s, tap, g], its groups a whole number of blocks."""
        options = self.options
        a_block = options.lanes * options.vector
        shape = [options.split_k, self.taps, self.blocks * a_block]
        region = ops.dispatch_region(ir.RankedTensorType.get(shape, self.conv.accumulator))
        count = region.regions[1].blocks.append()
        with ir.InsertionPoint(count):
            # Left to IREE it would be an error: it takes any loop for one of its own.
            sizes = ir.Operation.create(
                "iree_tensor_ext.dispatch.workgroup_count_from_slice", results=[self.index] * 3
            )
            ir.Operation.create("flow.return", operands=list(sizes.results))
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            out = tensor.EmptyOp(shape, self.conv.accumulator).result
            mapping = ["#iree_codegen.workgroup_mapping<y>", "#iree_codegen.workgroup_mapping<x>"]

            def workgroup(ids: list[ir.Value], out: ir.Value) -> _Piece:
                block, part = ids
                offsets = [part, 0, self.times(block, a_block)]
                size = [1, self.taps, a_block]
                piece = _slice(out, offsets, size)
                return self.workgroup(part, block, piece), offsets, size

            result = _forall((self.blocks, options.split_k), out, mapping, workgroup)
            result.owner.operation.attributes[ROLE] = ir.StringAttr.get("contraction")
            ops.dispatch_return(result)
        found: ir.Value = region.results[0]
        return found

    def times(self, value: ir.Value, factor: int) -> ir.Value:
        return arith.MulIOp(value, arith.ConstantOp(self.index, factor).result).result

    def workgroup(self, part: ir.Value, block: ir.Value, out: ir.Value) -> ir.Value:
        """One workgroup's sums, by way of LDS."""
        options = self.options
        shape = [self.taps, options.threads * options.vector]
        shared = tensor.EmptyOp(shape, self.conv.accumulator).result
        part, block = (arith.IndexCastOp(self.i32, x).result for x in (part, block))
        mapping = ["#gpu.thread<linear_dim_0>"]

        def sums(ids: list[ir.Value], out: ir.Value) -> _Piece:
            (thread,) = ids
            offsets = [0, self.times(thread, options.vector)]
            size = [self.taps, options.vector]
            piece = _slice(out, offsets, size)
            for tap, value in enumerate(self.thread(part, block, thread)):
                piece = self.write(piece, value, tap)
            return piece, offsets, size

        shared = _forall((options.threads,), shared, mapping, sums)
        items = self.taps * options.lanes
        # One piece a loop: IREE's bufferization copies the second of two that it cannot tell apart.
        for first in range(0, items, options.threads):

            def total(ids: list[ir.Value], out: ir.Value, first: int = first) -> _Piece:
                thread = arith.IndexCastOp(self.i32, ids[0]).result
                return self.total(shared, out, self.linear(thread, 1, first), items)

            out = _forall((options.threads,), out, mapping, total)
        return out

    def total(self, shared: ir.Value, out: ir.Value, item: ir.Value, items: int) -> _Piece:
        """The sum of a tap and some groups over the strips of a round; of no tap past the last."""
        options = self.options
        real = self.below(item, items)
        count = arith.IndexCastUIOp(self.index, real).result
        tap, lane = self.cut(self.inside(item, real), (self.taps, options.lanes))
        tap, lane = (arith.IndexCastOp(self.index, x).result for x in (tap, lane))
        found = self.zeros(self.summed)
        for strip in range(self.together):
            shift = arith.ConstantOp(self.index, strip * options.lanes).result
            found = self.add(found, self.read(shared, tap, arith.AddIOp(lane, shift).result))
        offsets, size = [tap, self.times(lane, options.vector)], [count, options.vector]
        piece = _slice(out, offsets, size)
        written = scf.IfOp(real, [piece.type], has_else=True)
        with ir.InsertionPoint(written.then_block):
            scf.YieldOp([self.write(piece, found, 0)])
        with ir.InsertionPoint(written.else_block):
            scf.YieldOp([piece])
        return written.results[0], offsets, size

    def write(self, piece: ir.Value, value: ir.Value, row: int) -> ir.Value:
        """A piece with the vector as one of its rows, or elements."""
        zero, first = (arith.ConstantOp(self.index, at).result for at in (0, row))
        at = [first, zero][: len(ops.shape_of(piece))]
        map = ir.AffineMap.get_minor_identity(len(at), 1)
        return vector.TransferWriteOp(piece.type, value, piece, at, map, [True]).result

    def read(self, shared: ir.Value, tap: ir.Value, thread: ir.Value) -> ir.Value:
        """The sum of a tap that a thread left in LDS."""
        at = [tap, self.times(thread, self.options.vector)]
        map = ir.AffineMap.get_minor_identity(2, 1)
        zero = ops.zero(self.conv.accumulator)
        return vector.TransferReadOp(self.summed, shared, at, map, zero, [True]).result

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return (arith.AddIOp if self.is_integer else arith.AddFOp)(a, b).result

    def thread(self, part: ir.Value, block: ir.Value, thread: ir.Value) -> list[ir.Value]:
        """A thread's sums, one vector a tap."""
        options = self.options
        thread = arith.IndexCastOp(self.i32, thread).result
        strip, lane = self.cut(thread, (self.together, options.lanes))
        vectors = self.linear(block, options.lanes, lane)
        if self.blocks * options.lanes > self.vectors:
            vectors = self.inside(vectors, self.below(vectors, self.vectors))
        groups = self.linear(vectors, options.vector)
        first = self.linear(part, self.rounds * self.together, strip)

        def a_round(count: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self.strip(self.linear(count, self.together, first), groups, sums)

        return self.loop(self.rounds, [self.zeros(self.summed)] * self.taps, a_round)

    def loop(
        self,
        trips: int,
        values: list[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """A loop from 0 with values that trips hand on; no loop for one trip."""
        if trips == 1:
            return body(self.const(0), values)
        bounds = [self.const(bound) for bound in (0, trips, 1)]
        loop = scf.ForOp(*bounds, values)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
        return list(loop.results)

    def strip(self, strip: ir.Value, groups: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums with those of a strip added."""
        options, row = self.options, self.row
        real = None
        if self.rounds * self.together * options.split_k > self.strips:
            real = self.below(strip, self.strips)
            strip = self.inside(strip, real)
        elif options.threads % options.lanes:  # threads of whose sums no use is made
            strip = self.inside(strip, self.below(strip, self.strips))
        n, depth, segment, block = self.cut(
            strip, (self.conv.pixels[0], self.depth.outs, self.segments, self.across)
        )
        top, left = self.linear(segment, options.rows), self.linear(block, options.columns)
        window = _Window(self, n, depth, left, groups, real)

        def a_trip(count: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            sums, rows = values[: self.taps], self.unpacked(values[self.taps :])
            for step in range(options.unroll):
                at = self.linear(count, options.unroll, self.linear(top, 1, step))
                rows += window.rows(at, range(len(rows), row.taps))
                gradients = window.gradients(at)
                sums = self.multiply(sums, rows, gradients)
                rows = rows[row.taps - self.kept :]
            return [*sums, *self.packed(rows)]

        start = window.rows(self.linear(top, 1, -1), range(self.shift, self.shift + self.kept), -1)
        trips = options.rows // options.unroll
        return self.loop(trips, [*sums, *self.packed(start)], a_trip)[: self.taps]

    def packed(self, rows: Iterable[list[ir.Value]]) -> list[ir.Value]:
        return [value for row in rows for value in row]

    def unpacked(self, values: list[ir.Value]) -> list[list[ir.Value]]:
        width = len(self.reach) * self.depth.taps
        return [values[i : i + width] for i in range(0, len(values), width)]

    def multiply(
        self,
        sums: list[ir.Value],
        rows: list[list[ir.Value]],
        gradients: list[tuple[ir.Value, ir.Value | None]],
    ) -> list[ir.Value]:
        """One output row's products added; a row of the window has all its depths.

        Where a strip goes past the output, zeros meet zeros, not an infinity the image may hold.
        """
        found = list(sums)
        for u, (gradient, test) in enumerate(gradients):
            for tap, (z, y, x) in enumerate(
                (z, y, x)
                for z in range(self.depth.taps)
                for y in range(self.row.taps)
                for x in range(self.column.taps)
            ):
                at = self.reach.index(u * self.column.stride + x * self.column.dilation)
                image = rows[y][z * len(self.reach) + at]
                if test is not None:
                    image = arith.SelectOp(test, image, self.zeros(image.type)).result
                found[tap] = self.multiply_add(image, gradient, found[tap])
        return found

    def widened(self, value: ir.Value) -> ir.Value:
        if self.type == self.conv.accumulator:
            return value
        return (arith.ExtSIOp if self.is_integer else arith.ExtFOp)(self.summed, value).result

    def multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        if self.is_integer:
            # Widened here: of what comes around a loop LLVM does not know that 24 bits hold it, and
            # a product of 32 bits takes four times as long.
            return arith.AddIOp(c, arith.MulIOp(self.widened(a), self.widened(b)).result).result
        return math_dialect.FmaOp(a, b, c).result


class _Window:
    """Where a strip reads: image `n`, output depth, first output column, groups."""

    def __init__(
        self,
        kernel: _Kernel,
        n: ir.Value,
        depth: ir.Value,
        left: ir.Value,
        groups: ir.Value,
        real: ir.Value | None,
    ) -> None:
        self.kernel, self.n, self.depth, self.left = kernel, n, depth, left
        self.groups, self.real = groups, real
        column = kernel.column
        at = kernel.linear(left, column.stride, -column.pad)
        last = (kernel.across - 1) * kernel.options.columns * column.stride
        self.columns = [
            self.bounded(kernel.linear(at, 1, step), column.size, step - column.pad, last)
            for step in kernel.reach
        ]

    def bounded(
        self, at: ir.Value, size: int, first: int, span: int
    ) -> tuple[ir.Value, ir.Value | None]:
        """An index that runs from `first` over `span`, kept inside an axis, and whether it is."""
        if first >= 0 and first + span < size:
            return at, None
        test = self.kernel.below(at, size)
        return self.kernel.inside(at, test), test

    def address(
        self, value: ir.Value, axes: tuple[int, tuple[int, ...], int], at: Sequence[ir.Value]
    ) -> ir.Value:
        """The element's linear address; `at` is (n, depth, row, column), of which the last few."""
        kernel = self.kernel
        shape = ops.shape_of(value)
        pixels = [at[0], *at[1 + 3 - (len(axes[1]) - 1) :]]
        found = kernel.linear(self.groups, math.prod(shape[axes[0] + 1 :]))
        for axis, index in zip(axes[1], pixels, strict=True):
            found = kernel.linear(index, math.prod(shape[axis + 1 :]), found)
        return found

    def rows(self, at: ir.Value, taps: Iterable[int], lowest: int = 0) -> list[list[ir.Value]]:
        """Rows of the image that some taps of output row `at` meet, which is `lowest` at least."""
        return [self.image_row(at, y, lowest) for y in taps]

    def image_row(self, at: ir.Value, y: int, lowest: int) -> list[ir.Value]:
        kernel, found = self.kernel, list[ir.Value]()
        conv, row, depth = kernel.conv, kernel.row, kernel.depth
        offset = y * row.dilation - row.pad
        first = offset + lowest * row.stride
        span = (kernel.segments * kernel.options.rows - 1 - lowest) * row.stride
        line, in_column = self.bounded(kernel.linear(at, row.stride, offset), row.size, first, span)
        for z in range(depth.taps):
            offset = z * depth.dilation - depth.pad
            sheet, in_depth = self.bounded(
                kernel.linear(self.depth, depth.stride, offset),
                depth.size,
                offset,
                (depth.outs - 1) * depth.stride,
            )
            for column, in_row in self.columns:
                where = self.address(conv.image, conv.image_axes, (self.n, sheet, line, column))
                test = kernel.both(self.real, in_column, in_depth, in_row)
                found.append(kernel.load(kernel.image, where, test))
        return found

    def gradients(self, at: ir.Value) -> list[tuple[ir.Value, ir.Value | None]]:
        """The output gradients of row `at`, and whether each is one where that is not known."""
        kernel, found = self.kernel, list[tuple[ir.Value, ir.Value | None]]()
        conv, options = kernel.conv, kernel.options
        line, in_column = self.bounded(at, kernel.row.outs, 0, kernel.segments * options.rows - 1)
        last = (kernel.across - 1) * options.columns
        for u in range(options.columns):
            column, in_row = self.bounded(
                kernel.linear(self.left, 1, u), kernel.column.outs, u, last
            )
            where = self.address(
                conv.gradient, conv.gradient_axes, (self.n, self.depth, line, column)
            )
            inside = kernel.both(in_column, in_row)
            value = kernel.load(kernel.gradient, where, kernel.both(self.real, inside))
            found.append((value, inside))
        return found


# A tensor, and the offsets and sizes of its place in a result.
_Piece = tuple[ir.Value, Sequence[ir.Value | int], Sequence[ir.Value | int]]


def _flat(value: ir.Value) -> ir.Value:
    """A tensor as a vector."""
    return ops.merge_axes(value, 0, len(ops.shape_of(value)))


def _mixed(values: Sequence[ir.Value | int]) -> tuple[list[ir.Value], ir.Attribute]:
    """Operands, and the attribute of static values in which they are left open."""
    open = ir.ShapedType.get_dynamic_size()
    static = [value if isinstance(value, int) else open for value in values]
    dynamic = [value for value in values if not isinstance(value, int)]
    return dynamic, ir.DenseI64ArrayAttr.get(static)


def _slice(
    value: ir.Value, offsets: Sequence[ir.Value | int], sizes: Sequence[ir.Value | int]
) -> ir.Value:
    """Part of a tensor, without axes of one element.

    IREE would drop these itself by reshapes, and its bufferization would copy some of the parts.
    """
    at, static_at = _mixed(offsets)
    extents, static_extents = _mixed(sizes)
    shape = [extent for extent in ir.DenseI64ArrayAttr(static_extents) if extent != 1]
    type = ir.RankedTensorType.get(shape, ops.element_of(value))
    ones = ir.DenseI64ArrayAttr.get([1] * len(sizes))
    return tensor.ExtractSliceOp(
        type, value, at, extents, [], static_at, static_extents, ones
    ).result


def _forall(
    sizes: Sequence[int],
    out: ir.Value,
    mapping: Sequence[str],
    body: Callable[[list[ir.Value], ir.Value], _Piece],
) -> ir.Value:
    """A loop of independent trips; each puts a piece of the result in its place."""
    rank = len(sizes)
    loop = scf.ForallOp(
        [0] * rank,
        sizes,
        [1] * rank,
        [out],
        mapping=ir.ArrayAttr.get([ir.Attribute.parse(name) for name in mapping]),
    )
    *ids, shared = loop.body.arguments
    with ir.InsertionPoint(loop.body):
        piece, offsets, extents = body(ids, shared)
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.block):
        at, static_at = _mixed(offsets)
        size, static_size = _mixed(extents)
        ones = ir.DenseI64ArrayAttr.get([1] * len(extents))
        tensor.ParallelInsertSliceOp(piece, shared, at, size, [], static_at, static_size, ones)
    result: ir.Value = loop.results[0]
    return result
