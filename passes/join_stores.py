# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Store adjacent elements of a lane by one instruction.

A lane has four or eight sums that are adjacent in the result, and IREE stores each by itself: it
sees a list of places, not that they are adjacent. Before and after, in a kernel's own terms:

    scatter result[places], mask, sums          for each run of adjacent places
                                                  at = run is in the result ? its first place : end
                                                  result[at ...] = its sums

Places are a number each beside what all of them share (`lane_indices.py`), so the runs are known. A
run is as long as the bytes of one store, aligned to four bytes, and all in the result or all out of
it: both by what the shared part is a multiple of. Buffer instructions drop stores behind the end of
the buffer, so a mask needs no branch. Stores whose places are not known so stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.lane_indices import (
    Bound,
    LaneIndices,
    Quotient,
    bounds_of,
    lane_indices,
    maker,
)
from conv_compiler.passes.main_loop.loop_ops import GLOBAL

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDRESSED_BITS = 8 << 32  # by the offset of a buffer instruction
_WIDEST_BYTES, _ALIGNED_BYTES = 16, 4  # of a store instruction
# What shows a buffer, or a part of it, in another shape.
_PARTS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
)


@dataclass(frozen=True, kw_only=True)
class JoinStores:
    """What is no scatter to memory through buffer instructions stays as it is.

    `zeros`: how far behind each element that is stored zeros are, in elements, which the kernel
    stores too. That is refused where a store stays as it is.
    """

    name: ClassVar[str] = "join-stores"
    zeros: tuple[int, ...] = ()

    def apply(self, module: ir.Module) -> None:
        """Join the stores of the module in place."""
        with module.context, ir.Location.unknown():
            scatters = list(_scatters(module))
            if self.zeros and not scatters:
                raise _no_zeros()
            for scatter in scatters:
                store = _read(scatter, self.zeros)
                if store is None and self.zeros:
                    raise _no_zeros()
                # Without a mask, and with nothing to join or to add, a kernel stays as it is.
                if store and (store.bounds or store.zeros or len(store.runs()[0]) > 1):
                    with ir.InsertionPoint(scatter):
                        store.write()
                    scatter.erase()


@dataclass(frozen=True, kw_only=True)
class _Store:
    """A lane's elements, their places in a buffer of `end` elements, and when they are stored."""

    values: ir.Value
    buffer: ir.Value
    end: int
    places: LaneIndices
    bounds: list[Bound]
    zeros: tuple[int, ...]

    def runs(self) -> list[list[int]]:
        """Positions in `values` of what each instruction stores, in the order of memory."""
        bits = ops.bits_of(ir.VectorType(self.values.type).element_type)
        offsets = self.places.offsets.ravel()
        order = sorted(range(len(offsets)), key=lambda i: (self.places.key(i), int(offsets[i])))
        length = _WIDEST_BYTES * 8 // bits
        while length > 1 and not self._fits(order, length, bits):
            length //= 2
        return [order[i : i + length] for i in range(0, len(order), length)]

    def _fits(self, order: Sequence[int], length: int, bits: int) -> bool:
        """Whether all elements are in runs of a length that may be stored at once."""
        offsets, shared = self.places.offsets.ravel(), self.places.divisor
        aligned = max(1, min(length, _ALIGNED_BYTES * 8 // bits))
        if len(order) % length or shared % aligned:
            return False
        for first in range(0, len(order), length):
            run = order[first : first + length]
            start = int(offsets[run[0]])
            if start % aligned or [int(offsets[i]) - start for i in run] != list(range(length)):
                return False
            if len({self._steps(i) for i in run}) > 1:
                return False
        return True

    def _steps(self, element: int) -> tuple[tuple[int, ...], ...]:
        """Numbers of an element: those with the same ones have the same quotients, and tests hold
        for all of them or for none."""
        return self.places.key(element), *(x.indices.step(element, x.below) for x in self.bounds)

    def write(self) -> None:
        """The stores: for each set of tests that differs, its first place, then all its runs."""
        offsets = self.places.offsets.ravel()
        starts: dict[object, ir.Value] = {}
        shared = _Shared({})
        for run in self.runs():
            tested = [
                (bound.indices.offset(run[0]), bound.indices.key(run[0])) for bound in self.bounds
            ]
            key = self.places.key(run[0]), *tested
            if key not in starts:
                starts[key] = self._start(shared, run[0])
            at = _plus(starts[key], int(offsets[run[0]]))
            part = vector.ShuffleOp(self.values, self.values, run).result
            vector.StoreOp(part, self.buffer, [at])
            for offset in self.zeros:
                none = arith.ConstantOp(part.type, _zero_of(part.type)).result
                vector.StoreOp(none, self.buffer, [_plus(at, offset)])

    def _start(self, shared: _Shared, element: int) -> ir.Value:
        """The part of an element's place that others share where the tests hold, else the buffer's
        end."""
        base = shared.of(self.places, element)
        inside: ir.Value | None = None
        for bound in self.bounds:
            left = _plus(shared.of(bound.indices, element), bound.indices.offset(element))
            below = _constant(bound.below)
            one = arith.CmpIOp(arith.CmpIPredicate.ult, left, below).result
            inside = one if inside is None else arith.AndIOp(inside, one).result
        if inside is None:
            return base
        return arith.SelectOp(inside, base, _constant(self.end)).result


class _Shared(NamedTuple):
    """What elements share of their indices, each sum made once."""

    made: dict[object, ir.Value]

    def of(self, indices: LaneIndices, element: int) -> ir.Value:
        """All of an element's index but its offset."""
        key = id(indices), indices.key(element)
        if key not in self.made:
            terms = [_scaled(value, factor) for value, factor in indices.scalars]
            terms += [_scaled(self._quotient(x, element), x.factor) for x in indices.quotients]
            self.made[key] = _sum(terms)
        return self.made[key]

    def _quotient(self, one: Quotient, element: int) -> ir.Value:
        """In 32 bits, which buffers are addressed by: a division of 64 is many instructions."""
        of = _plus(self.of(one.indices, element), one.indices.offset(element))
        index, word = ir.IndexType.get(), ir.IntegerType.get_signless(32)
        short = arith.IndexCastUIOp(word, of).result
        found = arith.DivUIOp(short, arith.ConstantOp(word, one.by).result).result
        return arith.IndexCastUIOp(index, found).result


def _scatters(module: ir.Module) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.scatter":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _no_zeros() -> UnsupportedStrategy:
    return UnsupportedStrategy(
        "join-stores: zeros beside elements that the kernel stores otherwise; use another tile"
    )


def _zero_of(type: ir.VectorType) -> ir.Attribute:
    element = type.element_type
    is_integer = isinstance(element, ir.IntegerType)
    zero = (ir.IntegerAttr if is_integer else ir.FloatAttr).get(element, 0)
    return ir.DenseElementsAttr.get_splat(type, zero)


def _read(scatter: ir.Operation, zeros: tuple[int, ...]) -> _Store | None:
    """What a scatter stores, and `zeros` beside it; None where it is not known, or not by buffer
    instructions."""
    buffer, first, indices, mask, values = scatter.operands
    kind = ir.MemRefType(buffer.type)
    is_plain = kind.has_static_shape and kind.rank == 1 and kind.layout == _identity()
    start, places, bounds = lane_indices(first), lane_indices(indices), bounds_of(mask)
    if GLOBAL not in str(kind) or not is_plain or start is None:
        return None
    if places is None or bounds is None:
        return None
    places, end = places.plus(start), _end_of(buffer)
    if end is None:
        return None
    # Where a test fails, an offset is added to the end.
    farthest = (end + int(places.offsets.max()) + max(zeros, default=0)) * ops.bits_of(
        kind.element_type
    )
    if bounds and (places.offsets.min() < 0 or farthest >= _ADDRESSED_BITS):
        return None
    return _Store(values=values, buffer=buffer, end=end, places=places, bounds=bounds, zeros=zeros)


def _end_of(buffer: ir.Value) -> int | None:
    """Elements of the whole buffer that a memref is of or shows a part of; None if not known.

    What lies behind the part is the caller's.
    """
    end: int = 0
    while True:
        kind = ir.MemRefType(buffer.type)
        if not kind.has_static_shape:
            return None
        end, op = max(end, int(math.prod(kind.shape))), maker(buffer)
        if op is None or op.name not in _PARTS:
            return end
        buffer = op.operands[0]


def _identity() -> ir.Attribute:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(1))


def _sum(terms: Sequence[ir.Value]) -> ir.Value:
    if not terms:
        return _constant(0)
    return reduce(lambda one, other: arith.AddIOp(one, other).result, terms)


def _scaled(value: ir.Value, factor: int) -> ir.Value:
    return value if factor == 1 else arith.MulIOp(value, _constant(factor)).result


def _plus(value: ir.Value, number: int) -> ir.Value:
    return value if number == 0 else arith.AddIOp(value, _constant(number)).result


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
