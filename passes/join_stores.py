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
from typing import TYPE_CHECKING, ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.implicit_gemm_parts.lane_indices import (
    Bound,
    LaneIndices,
    bounds_of,
    lane_indices,
)
from conv_compiler.passes.main_loop.loop_ops import GLOBAL

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDRESSED_BITS = 8 << 32  # by the offset of a buffer instruction
_WIDEST_BYTES, _ALIGNED_BYTES = 16, 4  # of a store instruction


@dataclass(frozen=True, kw_only=True)
class JoinStores:
    """No options. What is no scatter to memory through buffer instructions stays as it is."""

    name: ClassVar[str] = "join-stores"

    def apply(self, module: ir.Module) -> None:
        """Join the stores of the module in place."""
        with module.context, ir.Location.unknown():
            for scatter in list(_scatters(module)):
                store = _read(scatter)
                # Without a mask, and with nothing to join, a kernel stays as it is.
                if store and (store.bounds or len(store.runs()[0]) > 1):
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

    def runs(self) -> list[list[int]]:
        """Positions in `values` of what each instruction stores, in the order of memory."""
        bits = ops.bits_of(ir.VectorType(self.values.type).element_type)
        offsets = self.places.offsets.ravel()
        order = sorted(range(len(offsets)), key=lambda i: int(offsets[i]))
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
            if not all(_is_uniform(bound, run) for bound in self.bounds):
                return False
        return True

    def write(self) -> None:
        """The stores: for each set of tests that differs, its first place, then all its runs."""
        offsets = self.places.offsets.ravel()
        base = _sum(self.places)
        starts: dict[tuple[int, ...], ir.Value] = {}
        lefts = [_sum(bound.indices) for bound in self.bounds]
        for run in self.runs():
            tested = tuple(int(bound.indices.offsets.ravel()[run[0]]) for bound in self.bounds)
            if tested not in starts:
                starts[tested] = self._start(base, lefts, tested)
            at = _plus(starts[tested], int(offsets[run[0]]))
            part = vector.ShuffleOp(self.values, self.values, run)
            vector.StoreOp(part, self.buffer, [at])

    def _start(self, base: ir.Value, lefts: Sequence[ir.Value], tested: Sequence[int]) -> ir.Value:
        """The part of a place that elements share where the tests hold, else the buffer's end."""
        inside: ir.Value | None = None
        for bound, left, offset in zip(self.bounds, lefts, tested, strict=True):
            below = _constant(bound.below)
            one = arith.CmpIOp(arith.CmpIPredicate.ult, _plus(left, offset), below).result
            inside = one if inside is None else arith.AndIOp(inside, one).result
        if inside is None:
            return base
        return arith.SelectOp(inside, base, _constant(self.end)).result


def _scatters(module: ir.Module) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.scatter":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return iter(found)


def _read(scatter: ir.Operation) -> _Store | None:
    """What a scatter stores; None where it is not known, or not by buffer instructions."""
    buffer, first, indices, mask, values = scatter.operands
    kind = ir.MemRefType(buffer.type)
    is_plain = kind.has_static_shape and kind.rank == 1 and kind.layout == _identity()
    start, places, bounds = lane_indices(first), lane_indices(indices), bounds_of(mask)
    if GLOBAL not in str(kind) or not is_plain or start is None:
        return None
    if places is None or bounds is None:
        return None
    places, end = places.plus(start), math.prod(kind.shape)
    # Where a test fails, an offset is added to the end.
    farthest = (end + int(places.offsets.max())) * ops.bits_of(kind.element_type)
    if bounds and (places.offsets.min() < 0 or farthest >= _ADDRESSED_BITS):
        return None
    return _Store(values=values, buffer=buffer, end=end, places=places, bounds=bounds)


def _identity() -> ir.Attribute:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(1))


def _is_uniform(bound: Bound, run: Sequence[int]) -> bool:
    """Whether a test holds for all elements of a run or for none.

    It does where the run lies between two multiples of a number that divides the bound.
    """
    offsets = [int(bound.indices.offsets.ravel()[i]) for i in run]
    if min(offsets) == max(offsets):
        return True
    step = math.gcd(bound.indices.divisor, bound.below)
    return len({offset // step for offset in offsets}) == 1


def _sum(indices: LaneIndices) -> ir.Value:
    """The part of indices that all elements share."""
    total: ir.Value | None = None
    for value, factor in indices.scalars:
        term = value if factor == 1 else arith.MulIOp(value, _constant(factor)).result
        total = term if total is None else arith.AddIOp(total, term).result
    return _constant(0) if total is None else total


def _plus(value: ir.Value, number: int) -> ir.Value:
    return value if number == 0 else arith.AddIOp(value, _constant(number)).result


def _constant(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
