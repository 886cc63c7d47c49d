# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The copy of source rows on the stack, of kernels with the pixels of a row in the lanes.

Its axes are steps of source channels, rows, phases of columns, and pixels. A phase has every
pixel of a row that is so many from a multiple of the stride. So a tap meets adjacent pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.indices import (
    at_least,
    at_most,
    between,
    choice,
    constant,
    less,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.packed_operands import stack_tensor
from conv_compiler.passes.cpu_kernel.shuffles import side_by_side
from conv_compiler.passes.direct_parts.packing import loaded, stored, widened
from conv_compiler.targets.host import PAIR_INSTRUCTIONS

if TYPE_CHECKING:
    from conv_compiler.passes.cpu_kernel.products import Product
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.problem.plane_sizes import PlaneSizes


class PlaneCopy:
    """The copy of a workgroup's source rows, one plane at a time."""

    def __init__(
        self, options: PlaneSizes, source: Operand, element: ir.Type, product: Product
    ) -> None:
        self.options, self.source, self.product = options, source, product
        self.flat = source.flat()
        self.row, self.column = options.slides
        pair = PAIR_INSTRUCTIONS.get(options.instruction)
        self.multiplied = ir.Type.parse(pair.element) if pair else element

    def room(self, top: ir.Value) -> ir.Value:
        """The copy for rows of the result from `top` on, with zeros for pads. Data of planes are
        then written over all else."""
        options, element = self.options, self.product.element
        sums = ir.VectorType.get([options.lanes], element)
        self.zero = vector.BroadcastOp(sums, ops.zero(element)).result
        room = stack_tensor([options.copied_elements], element)

        def a_row(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            step, number = at
            place = self.place(step, number)
            row = plus(self.first_row(top), number)
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, row, constant(self.row.size)).result
            return [
                choice(
                    inside,
                    values[0].type,
                    lambda: self.pads(values[0], place),
                    lambda: self.zeros(values[0], place, 0, options.row_elements),
                )
            ]

        return loops([options.steps, options.copied_rows], [room], a_row)[0]

    def place(self, step: ir.Value, number: ir.Value) -> ir.Value:
        """Where a row of a step begins."""
        row = plus(times(step, self.options.copied_rows), number)
        return times(row, self.options.row_elements)

    def first_row(self, top: ir.Value) -> ir.Value:
        """The first source row that is copied; it may be negative."""
        return plus(times(top, self.row.step), constant(self.options.reach(0)[0]))

    def of_plane(self, room: ir.Value, plane: ir.Value, top: ir.Value) -> ir.Value:
        """The source rows of a plane that the rows from `top` on meet."""
        options, first = self.options, self.first_row(top)
        size = self.row.size * self.column.size
        base = times(plane, options.sources * size)
        begin = at_least(0, less(constant(0), first))
        end = at_most(options.copied_rows, at_least(0, less(constant(self.row.size), first)))

        def a_step(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            channel = plus(base, times(at[0], options.factors * size))

            def a_row(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
                here = plus(channel, times(plus(first, number), self.column.size))
                return [self.row_of(values[0], self.place(at[0], number), here)]

            return between(begin, end, values, a_row)

        return loops([options.steps], [room], a_step)[0]

    def pads(self, copy: ir.Value, place: ir.Value) -> ir.Value:
        """The copy with zeros for the pads of a row, and in some places of data."""
        options, size, stride = self.options, self.column.size, self.column.step
        pixels, front = options.phase_pixels, options.front
        for number, phase in enumerate(options.phases):
            own = plus(place, constant(number * pixels))
            behind = front + max(0, -(-(size - phase) // stride))
            copy = self.zeros(copy, own, 0, front)
            copy = self.zeros(copy, own, behind, pixels)
        return copy

    def row_of(self, copy: ir.Value, place: ir.Value, here: ir.Value) -> ir.Value:
        """The copy with the data of a row of a step; the last vector begins earlier where vectors
        are no whole row."""
        options, size, stride = self.options, self.column.size, self.column.step
        if size < stride:
            for pixel in range(size):
                copy = self.moved(copy, place, here, constant(0), pixel, 1)
            return copy
        lanes = options.copied_lanes

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            return [self.moved(values[0], place, here, times(at[0], lanes), 0, lanes)]

        whole = lanes * stride
        (copy,) = loops([size // whole], [copy], some)
        if size % whole:
            copy = self.moved(copy, place, here, constant(0), size - whole, lanes)
        return copy

    def zeros(self, copy: ir.Value, place: ir.Value, first: int, behind: int) -> ir.Value:
        """The copy with zeros from one element of a row to before another, and in some beside them:
        whole vectors, of which the last ends there."""
        lanes = self.options.lanes

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            number = plus(times(at[0], lanes), constant(first))
            begin = at_most(max(0, behind - lanes), number)
            return [stored(self.zero, values[0], [plus(place, begin)])]

        return loops([-(-max(0, behind - first) // lanes)], [copy], some)[0]

    def moved(
        self,
        copy: ir.Value,
        place: ir.Value,
        here: ir.Value,
        unit: ir.Value,
        first: int,
        lanes: int,
    ) -> ir.Value:
        """The copy with so many pixels of each phase, from pixel `first` of a unit on."""
        options, stride = self.options, self.column.step
        apart = self.row.size * self.column.size
        pixel = plus(here, times(unit, stride), constant(first))
        single = self.column.size < stride
        rows = [
            self.phases_of(plus(pixel, constant(i * apart)), 1 if single else stride, lanes)
            for i in range(options.factors)
        ]
        for number, phase in enumerate(options.phases):
            behind = (phase - first) % stride
            if single and behind:
                continue
            value = self.joined([row[0 if single else behind] for row in rows])
            at = number * options.phase_pixels + options.front + (first + behind) // stride
            copy = stored(value, copy, [plus(place, unit, constant(at))])
        return copy

    def phases_of(self, pixel: ir.Value, stride: int, lanes: int) -> list[ir.Value]:
        """Of pixels of a row from one on, every `stride`-th from each of the first ones on."""
        if stride == 2 and self.is_shifted:
            return self.halves(self.source.applied(loaded(self.flat, pixel, 2 * lanes)))
        rows = [
            widened(
                self.source.applied(loaded(self.flat, plus(pixel, constant(i * lanes)), lanes)),
                self.multiplied,
            )
            for i in range(stride)
        ]
        if stride == 1:
            return rows
        found = []
        for phase in range(stride):
            value = rows[0]
            for number in range(1, stride):
                mask = _mask(range(phase, stride * lanes, stride), number, lanes)
                value = vector.ShuffleOp(value, rows[number], mask).result
            found.append(value)
        return found

    @property
    def is_shifted(self) -> bool:
        """Whether pixels are the upper halves of elements of the copy."""
        return str(self.multiplied) == "f32" and str(ops.element_of(self.flat)) == "bf16"

    def halves(self, value: ir.Value) -> list[ir.Value]:
        """Even and odd elements of a bf16 vector as f32: the halves of 32 bits."""
        lanes = ir.VectorType(value.type).shape[0] // 2
        i32 = ir.IntegerType.get_signless(32)
        type = ir.VectorType.get([lanes], i32)
        both = vector.BitCastOp(type, value).result

        def splat(number: int) -> ir.Value:
            attribute = ir.DenseElementsAttr.get_splat(type, ir.IntegerAttr.get(i32, number))
            return arith.ConstantOp(type, attribute).result

        wide = ir.VectorType.get([lanes], self.multiplied)
        parts = (arith.ShLIOp(both, splat(16)).result, arith.AndIOp(both, splat(-65536)).result)
        return [arith.BitcastOp(wide, part).result for part in parts]

    def joined(self, rows: list[ir.Value]) -> ir.Value:
        """The pixels of a step's channels as elements of the copy."""
        return rows[0] if len(rows) == 1 else side_by_side(rows, self.product.element)


def _mask(places: range, number: int, lanes: int) -> list[int]:
    """The shuffle of a vector of what earlier rows have of some places, and a row by its number.

    The first row is no such vector: it has its own elements.
    """
    mask = []
    for lane, place in enumerate(places):
        row, own = divmod(place, lanes)
        if row == number:
            mask.append(lanes + own)
        elif number == 1:
            mask.append(own if row == 0 else 0)
        else:
            mask.append(lane)
    return mask
