# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread of the kernel `depthwise_pixels`: a strip of result pixels, sums in registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, vector
from iree.compiler.dialects import math as math_dialect

from conv_compiler.ir import ops
from conv_compiler.passes.depthwise_parts.arithmetic import (
    below,
    both,
    bounded,
    cut,
    linear,
)

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand, Result
    from conv_compiler.passes.depthwise_parts.options import PixelOptions
    from conv_compiler.problem.slides import Slide

# Where a result pixel lies in its thread's strip: depth, row, column.
Place = tuple[int, ir.Value | int, int]


class Pixels:
    """What the threads of a kernel have in common."""

    def __init__(
        self,
        options: PixelOptions,
        slides: tuple[Slide, Slide, Slide],
        operands: tuple[Operand, Operand],
        result: Result,
        accumulator: ir.Type,
    ) -> None:
        self.options, self.result, self.accumulator = options, result, accumulator
        self.depth, self.row, self.column = slides
        self.source, self.weight = operands
        self.tensors = [one.flat() for one in operands]
        self.extra = result.extra()
        self.summed = ir.VectorType.get([options.vector], accumulator)
        self.is_integer = isinstance(accumulator, ir.IntegerType)
        self.taps = math.prod(options.filter)
        # Strips that the threads of all workgroups have, down and across; some may lie outside.
        self.segments = _rounded_up(-(-self.row.units // options.rows), options.down)
        self.across = _rounded_up(-(-self.column.units // options.columns), options.across)
        self.reach = self.column.reach(options.columns)

    def weights(self, groups: ir.Value) -> list[ir.Value]:
        """The filters of a thread's groups, one vector a tap. They lie one behind the other."""
        count, first = self.options.vector, linear(groups, self.taps)
        loaded = [
            self.load(self.tensors[1], linear(first, 1, piece * count))
            for piece in range(self.taps)
        ]
        if count == 1:
            return [self.multiplied(self.weight, value) for value in loaded]
        found = []
        for tap in range(self.taps):
            places = [divmod(group * self.taps + tap, count) for group in range(count)]
            elements = [vector.ExtractOp(loaded[piece], [], [at]).result for piece, at in places]
            gathered = vector.FromElementsOp(loaded[0].type, elements).result
            found.append(self.multiplied(self.weight, gathered))
        return found

    def multiplied(self, operand: Operand, value: ir.Value) -> ir.Value:
        """Elements of an operand after its ops, in the type of the sums."""
        value = operand.applied(value)
        if ir.VectorType(value.type).element_type == self.accumulator:
            return value
        return (arith.ExtSIOp if self.is_integer else arith.ExtFOp)(self.summed, value).result

    def multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """c + a * b."""
        if self.is_integer:
            return arith.AddIOp(c, arith.MulIOp(a, b).result).result
        return math_dialect.FmaOp(a, b, c).result

    def load(self, tensor: ir.Value, at: ir.Value) -> ir.Value:
        """The vector at an element's address."""
        element = ops.element_of(tensor)
        type = ir.VectorType.get([self.options.vector], element)
        at = arith.IndexCastOp(ir.IndexType.get(), at).result
        map = ir.AffineMap.get_identity(1)
        return vector.TransferReadOp(type, tensor, [at], map, ops.zero(element), [True]).result

    def zeros(self) -> ir.Value:
        """No sum."""
        element = self.accumulator
        zero = ir.IntegerAttr.get(element, 0) if self.is_integer else ir.FloatAttr.get(element, 0.0)
        splat = ir.DenseElementsAttr.get_splat(self.summed, zero)
        return arith.ConstantOp(self.summed, splat).result


class Strip:
    """The strip of one thread: image `n`, unit of depth, first units of rows and columns, groups.

    `real` tells whether it is one; None where it is known to be. `write` puts a vector in its place
    of the thread's piece of the result.
    """

    def __init__(
        self,
        kernel: Pixels,
        at: Sequence[ir.Value],
        groups: ir.Value,
        real: ir.Value | None,
        write: Callable[[ir.Value, ir.Value, Place], ir.Value],
    ) -> None:
        self.kernel, self.groups, self.real, self.write = kernel, groups, real, write
        self.n, self.deep, self.top, self.left = at
        self.weights = kernel.weights(groups)
        column, options = kernel.column, kernel.options
        span = (kernel.across - 1) * options.columns * column.step
        self.columns = {
            step: bounded(linear(self.left, column.step, step), column.size, step, span)
            for step in kernel.reach
        }

    def address(self, extents: Sequence[int], at: Sequence[ir.Value]) -> ir.Value:
        """The address of the first group of a pixel (n, depth, row, column)."""
        found, *others = at
        for extent, index in zip(extents, others, strict=True):
            found = linear(found, extent, index)
        return linear(found, self.kernel.options.groups, self.groups)

    def finish(self, piece: ir.Value, sums: ir.Value, place: Place) -> ir.Value:
        """The piece with a pixel's sums, where there is such a pixel."""
        kernel = self.kernel
        slides = (kernel.depth, kernel.row, kernel.column)
        firsts = (self.deep, self.top, self.left)
        pixels = [
            linear(first, slide.phases, index)
            for first, slide, index in zip(firsts, slides, place, strict=True)
        ]
        tests = [
            below(pixel, slide.outs) if units * slide.phases > slide.outs else None
            for pixel, slide, units in zip(
                pixels,
                slides,
                (
                    kernel.depth.units,
                    kernel.segments * kernel.options.rows,
                    kernel.across * kernel.options.columns,
                ),
                strict=True,
            )
        ]
        extents = [slide.outs for slide in slides]

        def put() -> ir.Value:
            extra = [
                kernel.load(tensor, self.address(extents, [self.n, *pixels]))
                for tensor in kernel.extra
            ]
            return self.write(piece, kernel.result.finished(sums, extra), place)

        test = both(self.real, *tests)
        if test is None:
            return put()
        written = scf.IfOp(test, [piece.type], has_else=True)
        with ir.InsertionPoint(written.then_block):
            scf.YieldOp([put()])
        with ir.InsertionPoint(written.else_block):
            scf.YieldOp([piece])
        result: ir.Value = written.results[0]
        return result


def _rounded_up(value: int, to: int) -> int:
    return -(-value // to) * to


def threads_place(options: PixelOptions, thread: ir.Value) -> list[ir.Value]:
    """Where a thread lies in its workgroup: image, strip down, strip across, lane."""
    return cut(thread, (options.images, options.down, options.across, options.lanes))
