# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the elements of a strided data gradient lie that a matrix kernel has by phases.

Behind the sums the payload puts phases in place (`build/bwd_data.py`): views, one op with
`FIRST_PHASES`, views. Each of them moves elements, so the place of an element behind all of them
follows from its place in front.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import ops
from conv_compiler.ir.attributes import FIRST_PHASES
from conv_compiler.ir.slices import COLLAPSE, EXPAND, SLICE, groups_of

_VIEWS = (COLLAPSE, EXPAND, SLICE)


class Place(NamedTuple):
    """Indices of an element, and the bits that must all be 1 for there to be such an element."""

    indices: list[ir.Value]
    inside: list[ir.Value]


def moves_behind(value: ir.Value) -> list[ir.Operation]:
    """The ops that put a value's phases in place, up to the last view; none where nothing does."""
    found: list[ir.Operation] = []
    while len(users := [use.owner.operation for use in value.uses]) == 1:
        (user,) = users
        if user.name not in _VIEWS and not _puts_phases(user):
            break
        found.append(user)
        value = user.results[0]
    return found if any(map(_puts_phases, found)) else []


def _puts_phases(op: ir.Operation) -> bool:
    return FIRST_PHASES in op.attributes


def moved(place: Place, moves: Sequence[ir.Operation]) -> Place:
    """The place behind some ops of the element at a place in front of them."""
    for op in moves:
        if op.name == EXPAND:
            place = place._replace(indices=list(_expanded(place.indices, op)))
        elif op.name == COLLAPSE:
            place = place._replace(indices=list(_collapsed(place.indices, op)))
        elif op.name == SLICE:
            place = _sliced(place, op)
        else:
            place = place._replace(indices=_of_phases(place.indices, op))
    return place


def in_weight(
    sizes: Mapping[str, int], channels_first: bool, at: Mapping[str, ir.Value]
) -> list[ir.Value]:
    """The indices of the element of P at `at` (g, m, t, n) in the result, whose loops have these
    `sizes` in its order. The columns are (channels, taps), or the other way round."""
    taps = [name for name in sizes if name not in ("g", "k", "c")]
    found = {"g": at["g"], "k": at["m"]}
    if "t" in at:
        outer, inner = (["c"], taps) if channels_first else (taps, ["c"])
        found |= zip(outer, split(at["t"], [sizes[x] for x in outer]), strict=True)
    else:
        inner = ["c", *taps] if channels_first else [*taps, "c"]
    found |= zip(inner, split(at["n"], [sizes[x] for x in inner]), strict=True)
    return [found[name] for name in sizes]


def split(index: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
    """The indices, outermost first, of one that runs over axes of these sizes together.

    That of the outermost axis is beyond it where the index is beyond all of them.
    """
    found: list[ir.Value] = []
    for number, size in enumerate(sizes):
        behind = math.prod(sizes[number + 1 :])
        one = index if behind == 1 else arith.DivUIOp(index, _number(behind)).result
        if number and size > 1:
            one = arith.RemUIOp(one, _number(size)).result
        found.append(_number(0) if number and size == 1 else one)
    return found


def _expanded(indices: Sequence[ir.Value], op: ir.Operation) -> Iterator[ir.Value]:
    shape = ops.shape_of(op.results[0])
    for index, group in zip(indices, groups_of(op), strict=True):
        yield from split(index, [shape[axis] for axis in group])


def _collapsed(indices: Sequence[ir.Value], op: ir.Operation) -> Iterator[ir.Value]:
    shape = ops.shape_of(op.operands[0])
    for group in groups_of(op):
        total = indices[group[0]]
        for axis in group[1:]:
            scaled = arith.MulIOp(total, _number(shape[axis])).result
            total = arith.AddIOp(scaled, indices[axis]).result
        yield total


def _sliced(place: Place, op: ir.Operation) -> Place:
    whole, part = ops.shape_of(op.operands[0]), ops.shape_of(op.results[0])
    inside = [
        arith.CmpIOp(arith.CmpIPredicate.ult, index, _number(size)).result
        for index, size, all in zip(place.indices, part, whole, strict=True)
        if size < all
    ]
    return Place(place.indices, [*place.inside, *inside])


def _of_phases(indices: Sequence[ir.Value], op: ir.Operation) -> list[ir.Value]:
    """The indices behind the op of phases: of a phase that was not computed, the first one."""
    read = ops.read_axes(op, 0)
    firsts = ir.DenseI64ArrayAttr(op.attributes[FIRST_PHASES])
    return [
        indices[read.index(axis)] if axis in read else _number(first)
        for axis, first in enumerate(firsts)
    ]


def _number(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
