# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights as register tiles read them, by a kernel of their own: vectors one behind another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from iree.compiler import ir
from iree.compiler.dialects import tensor, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.foralls import Piece, slice_of
from conv_compiler.passes.cpu_kernel.indices import (
    at_most,
    constant,
    delinearized,
    loops,
    plus,
    times,
)
from conv_compiler.passes.cpu_kernel.shuffles import riffled
from conv_compiler.passes.direct_parts.regions import by_workgroups

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand


class Axis(NamedTuple):
    """An axis of the packed weights: its extent, the step of it in memory, and the farthest that
    one of it begins, where the last one overlaps the one before."""

    extent: int
    step: int
    most: int | None = None

    def address(self, index: ir.Value) -> ir.Value:
        """Where one begins."""
        at = times(index, self.step)
        return at if self.most is None else at_most(self.most, at)


class PackedRows(Protocol):
    """How many weights lie one behind another, and how many of the last ones where these are
    fewer, else 0."""

    @property
    def lanes(self) -> int:
        """Weights that lie one behind another."""

    @property
    def tail(self) -> int:
        """Those of the last row where it is not full."""


def loaded(source: ir.Value, at: ir.Value, lanes: int) -> ir.Value:
    """Adjacent elements of a tensor of one axis."""
    element = ops.element_of(source)
    type = ir.VectorType.get([lanes], element)
    map = ir.AffineMap.get_identity(1)
    return vector.TransferReadOp(type, source, [at], map, ops.zero(element), [True]).result


def in_all_lanes(source: ir.Value, at: ir.Value, lanes: int) -> ir.Value:
    """An element of a tensor of one axis, as a vector of it alone."""
    element = tensor.ExtractOp(source, [at]).result
    return vector.BroadcastOp(ir.VectorType.get([lanes], element.type), element).result


def stored(value: ir.Value, target: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
    """A tensor with a vector in it."""
    map = ir.AffineMap.get_minor_identity(len(at), 1)
    return vector.TransferWriteOp(target.type, value, target, list(at), map, [True]).result


def widened(value: ir.Value, element: ir.Type) -> ir.Value:
    """A vector in a type that holds all its values."""
    type = ir.VectorType(value.type)
    if type.element_type == element:
        return value
    name = "arith.extsi" if isinstance(element, ir.IntegerType) else "arith.extf"
    whole = ir.VectorType.get(type.shape, element)
    made: ir.Value = ir.Operation.create(name, results=[whole], operands=[value]).results[0]
    return made


class Packing:
    """The kernel that packs weights: `outer` axes one workgroup each, `inner` ones in its loops.

    A vector has `lanes` weights that lie `apart` elements apart. Where those are not adjacent, but
    those along the innermost axis are, squares of both are transposed in registers.
    """

    def __init__(
        self,
        options: PackedRows,
        weight: Operand,
        element: ir.Type,
        outer: Sequence[Axis],
        inner: Sequence[Axis],
        apart: int,
    ) -> None:
        self.options, self.weight, self.element = options, weight, element
        self.outer, self.inner, self.apart = list(outer), list(inner), apart

    @property
    def is_transposed(self) -> bool:
        """Whether squares are."""
        lanes, (extent, step, _) = self.options.lanes, self.inner[-2]
        whole = lanes & (lanes - 1) == 0 and extent % lanes == 0
        return self.apart != 1 and step == 1 and whole

    def region(self) -> ir.Value:
        """The packed weights: a tensor of one axis."""
        size = self.options.lanes * math.prod(one.extent for one in self.inner)
        count = math.prod(one.extent for one in self.outer)
        source = self.weight.flat()

        def workgroup(number: ir.Value, out: ir.Value) -> Piece:
            at = delinearized(number, [one.extent for one in self.outer])
            first = times(number, size)
            piece = slice_of(out, [first], [size], [size])
            return self.filled(piece, source, address(at, self.outer)), [first], [size]

        return by_workgroups([count * size], self.element, count, "packing", workgroup)

    def filled(self, piece: ir.Value, source: ir.Value, base: ir.Value) -> ir.Value:
        """A workgroup's part of the packed weights."""
        lanes, extents = self.options.lanes, [one.extent for one in self.inner]
        together = lanes if self.is_transposed else 1
        *outside, along, vectors = extents
        # Vectors of which the last is not full are told apart where the kernel is written.
        tail, apart = self.options.tail, self.inner[-1].step
        numbers = range(vectors if tail else 1)

        def some(at: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            (target,) = values
            for number in numbers:
                place = [*at[:-2], times(at[-2], together), plus(at[-1], constant(number))]
                here = [*place[:-1], at[-1]]
                first = plus(base, address(here, self.inner), constant(number * apart))
                to = constant(0)
                for index, extent in zip(place, extents, strict=True):
                    to = plus(times(to, extent), index)
                full = tail if tail and number == vectors - 1 else lanes
                for step, value in enumerate(self.vectors(source, first, full)):
                    there = plus(times(to, lanes), constant(step * vectors * lanes))
                    target = stored(value, target, [there])
            return [target]

        counts = [*outside, along // together, 1 if tail else vectors]
        return loops(counts, [piece], some)[0]

    def vectors(self, source: ir.Value, address: ir.Value, full: int) -> list[ir.Value]:
        """The vectors of one place, or of a square of adjacent ones; `full` lanes hold weights."""
        lanes = self.options.lanes
        zero = vector.BroadcastOp(
            ir.VectorType.get([lanes], self.element), ops.zero(self.element)
        ).result
        if not self.is_transposed:
            value = self.ready(self.gathered(source, address, full))
            if full == lanes:
                return [value]
            return [vector.InsertStridedSliceOp(value, zero, [0], [1]).result]
        rows = [
            self.ready(loaded(source, plus(address, constant(lane * self.apart)), lanes))
            for lane in range(full)
        ]
        return riffled([*rows, *[zero] * (lanes - full)])

    def ready(self, value: ir.Value) -> ir.Value:
        """Weights behind the ops on them, in the type of sums."""
        return widened(self.weight.applied(value), self.element)

    def gathered(self, source: ir.Value, address: ir.Value, lanes: int) -> ir.Value:
        """A vector of weights."""
        if self.apart == 1:
            return loaded(source, address, lanes)
        elements = [
            tensor.ExtractOp(source, [plus(address, constant(lane * self.apart))]).result
            for lane in range(lanes)
        ]
        type = ir.VectorType.get([lanes], ops.element_of(source))
        return vector.FromElementsOp(type, elements).result


def address(at: Sequence[ir.Value], axes: Sequence[Axis]) -> ir.Value:
    """Where the weights of some axes begin, in elements."""
    return plus(*(one.address(index) for index, one in zip(at, axes, strict=True)))
