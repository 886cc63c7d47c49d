# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of indices as numbers: what is the same for all elements, and a known number for each.

    index[e] = sum of factor x scalar value + offset[e] + sum of factor x (index'[e] / number)

where index' is of the same kind. Read back from the operations that make a vector. One that is not
of this kind has no such form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from iree.compiler import ir

from conv_compiler.passes.main_loop.loop_ops import operation

# Operations whose result is their operand, of another type perhaps.
_SAME = ("iree_codegen.index_hint", "arith.index_cast", "arith.index_castui")
_Offsets = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class Quotient(NamedTuple):
    """A term of indices: `factor` times the whole number of times that `by` is in other ones."""

    indices: LaneIndices
    by: int
    factor: int


@dataclass(frozen=True)
class LaneIndices:
    """A lane's indices: `scalars` with their factors, `offsets` in the vector's shape, and what of
    each element is the quotient of an index of its own."""

    scalars: tuple[tuple[ir.Value, int], ...]
    offsets: _Offsets
    quotients: tuple[Quotient, ...] = ()

    def plus(self, other: LaneIndices) -> LaneIndices:
        """The sums, element by element."""
        found = dict(self.scalars)
        for value, factor in other.scalars:
            found[value] = found.get(value, 0) + factor
        quotients = (*self.quotients, *other.quotients)
        return LaneIndices(tuple(found.items()), self.offsets + other.offsets, quotients)

    def times(self, factor: int) -> LaneIndices:
        """The products with a number."""
        scalars = tuple((value, one * factor) for value, one in self.scalars)
        quotients = tuple(one._replace(factor=one.factor * factor) for one in self.quotients)
        return LaneIndices(scalars, self.offsets * factor, quotients)

    def over(self, number: int) -> LaneIndices:
        """The quotients by a number, rounded down."""
        none = np.zeros(self.offsets.shape, np.int64)
        return LaneIndices((), none, (Quotient(self, number, 1),))

    def shaped(self, change: Callable[[_Offsets], _Offsets]) -> LaneIndices:
        """The same elements in a vector of another shape."""
        quotients = tuple(
            one._replace(indices=one.indices.shaped(change)) for one in self.quotients
        )
        return replace(self, offsets=change(self.offsets), quotients=quotients)

    def key(self, element: int) -> tuple[int, ...]:
        """Numbers of an element. All quotients of two with the same numbers are the same."""
        return tuple(n for one in self.quotients for n in one.indices.step(element, one.by))

    def step(self, element: int, size: int) -> tuple[int, ...]:
        """Numbers of an element. Two with the same numbers lie between two multiples of a size.

        They do between two multiples of what divides the size and the part that all share.
        """
        return self.offset(element) // math.gcd(self.divisor, size), *self.key(element)

    def offset(self, element: int) -> int:
        """That of an element."""
        return int(self.offsets.ravel()[element])

    @property
    def number(self) -> int | None:
        """The number that all elements are, if they are one that is known."""
        is_plain = not self.scalars and not self.quotients
        known = is_plain and self.offsets.min() == self.offsets.max()
        return int(self.offsets.flat[0]) if known else None

    @property
    def divisor(self) -> int:
        """What the part that all elements share is known to be a multiple of; 0 if it is 0."""
        scalars = (factor * divisor(value) for value, factor in self.scalars)
        return math.gcd(*scalars, *(one.factor for one in self.quotients))


class Bound(NamedTuple):
    """A test of each element: whether its index is below a number."""

    indices: LaneIndices
    below: int


def lane_indices(value: ir.Value) -> LaneIndices | None:
    """The form of an index or of a vector of indices; None where it has none that is known."""
    shape = tuple(value.type.shape) if isinstance(value.type, ir.VectorType) else ()
    op = maker(value)
    if op is not None and op.name == "arith.constant":
        return LaneIndices((), _numbers(op, shape))
    if op is not None and op.name == "vector.step":
        return LaneIndices((), np.arange(shape[0], dtype=np.int64))
    if op is not None and op.name in ("arith.addi", "arith.muli"):
        left, right = map(lane_indices, op.operands)
        if left is not None and right is not None:
            if op.name == "arith.addi":
                return left.plus(right)
            for one, other in ((left, right), (right, left)):
                if other.number is not None:
                    return one.times(other.number)
    if op is not None and op.name in ("arith.divui", "arith.remui"):
        return _divided(op)
    if not shape:
        return LaneIndices(((value, 1),), np.zeros((), np.int64))
    change = _change(op, shape)
    if op is None or change is None:
        return None
    source = lane_indices(op.operands[0])
    return None if source is None else source.shaped(change)


def _divided(op: ir.Operation) -> LaneIndices | None:
    """A quotient, or what is left of an index less the multiples in it."""
    left, right = map(lane_indices, op.operands)
    if left is None or right is None or not right.number:
        return None
    quotient = left.over(right.number)
    is_quotient = op.name == "arith.divui"
    return quotient if is_quotient else left.plus(quotient.times(-right.number))


def bounds_of(mask: ir.Value) -> list[Bound] | None:
    """The tests that all must hold where a vector of bits is 1; None where they are not known."""
    shape, op = tuple(ir.VectorType(mask.type).shape), maker(mask)
    if op is None:
        return None
    if op.name == "arith.constant":
        return [] if _numbers(op, shape).all() else None
    if op.name == "arith.andi":
        left, right = map(bounds_of, op.operands)
        return None if left is None or right is None else [*left, *right]
    if op.name == "arith.cmpi":
        return _comparison(op)
    change = _change(op, shape)
    if change is None or not isinstance(op.operands[0].type, ir.VectorType):
        return None
    inner = bounds_of(op.operands[0])
    return inner and [Bound(one.indices.shaped(change), one.below) for one in inner]


def _comparison(op: ir.Operation) -> list[Bound] | None:
    unsigned = ir.Attribute.parse("6 : i64")  # arith::CmpIPredicate::ult
    left, right = map(lane_indices, op.operands)
    if op.attributes["predicate"] != unsigned or left is None or right is None:
        return None
    return None if right.number is None else [Bound(left, right.number)]


def divisor(value: ir.Value) -> int:
    """A number that a scalar index is known to be a multiple of; 0 if it is 0."""
    op = maker(value)
    if op is None:
        return 1
    if op.name == "arith.constant":
        return abs(int(ir.IntegerAttr(op.attributes["value"]).value))
    if op.name == "arith.addi":
        return math.gcd(*map(divisor, op.operands))
    if op.name == "arith.muli":
        return math.prod(map(divisor, op.operands))
    if op.name in _SAME:
        return divisor(op.operands[0])
    if op.name == "affine.apply":
        map_of = ir.AffineMapAttr(op.attributes["map"]).value
        known = [divisor(operand) for operand in op.operands]
        return _divisor_of(map_of.results[0], known[: map_of.n_dims], known[map_of.n_dims :])
    return 1


def _divisor_of(expr: ir.AffineExpr, dims: Sequence[int], symbols: Sequence[int]) -> int:
    """What an expression is a multiple of, from what its dimensions and symbols are."""
    if isinstance(expr, ir.AffineConstantExpr):
        return abs(int(expr.value))
    if isinstance(expr, ir.AffineDimExpr):
        return dims[int(expr.position)]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[int(expr.position)]
    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr | ir.AffineModExpr):
        parts = [_divisor_of(part, dims, symbols) for part in (expr.lhs, expr.rhs)]
        # a mod b is a less a multiple of b.
        return math.prod(parts) if isinstance(expr, ir.AffineMulExpr) else math.gcd(*parts)
    return 1


def maker(value: ir.Value) -> ir.Operation | None:
    """The operation of which a value is a result; None for an argument."""
    is_op = isinstance(value.owner, ir.OpView | ir.Operation)
    return operation(value.owner) if is_op else None


def _numbers(op: ir.Operation, shape: tuple[int, ...]) -> _Offsets:
    """What a constant is, in its shape."""
    value = op.attributes["value"]
    numbers = list(value) if isinstance(value, ir.DenseIntElementsAttr) else [value.value]
    return np.array(numbers, np.int64).reshape(shape)


def _change(
    op: ir.Operation | None, shape: tuple[int, ...]
) -> Callable[[_Offsets], _Offsets] | None:
    """How an operation that only moves elements makes a vector of `shape` of its source."""
    if op is None:
        return None
    if op.name == "vector.broadcast":
        return lambda source: np.broadcast_to(source, shape)
    if op.name == "vector.shape_cast":
        return lambda source: source.reshape(shape)
    if op.name == "vector.transpose":
        order = tuple(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        return lambda source: source.transpose(order)
    return None
