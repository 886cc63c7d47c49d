# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of arguments, from the payload to the passes that place them: operands that are read from
larger tensors, and results that are stored into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from conv_compiler.ir import ops

SLICE, BARRIER, STORE = "tensor.extract_slice", "util.optimization_barrier", "tensor.insert_slice"
EXPAND, COLLAPSE = "tensor.expand_shape", "tensor.collapse_shape"
# Stores each value of a tensor in a place of its own, or nowhere.
MAP_STORE = "iree_linalg_ext.map_store"


def _behind_barrier(value: ir.Value) -> ir.Value:
    """The value, which no pass sees what it is made of."""
    barrier = ir.Operation.create(BARRIER, results=[value.type], operands=[value])
    result: ir.Value = barrier.results[0]
    return result


def sliced(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The corner of `shape` of an argument, which no pass looks through; the argument itself where
    that is all of it."""
    part = ops.leading(value, shape)
    return part if part == value else _behind_barrier(part)


def stored(value: ir.Value, larger: ir.Value) -> ir.Value:
    """The larger tensor with a value in its corner, which no pass looks through."""
    return put(_behind_barrier(value), larger)


def put(value: ir.Value, larger: ir.Value) -> ir.Value:
    """The larger tensor with a value in its corner; axes of any size are the larger one's."""
    shape, of_any = ops.shape_of(value), ir.ShapedType.get_dynamic_size()
    at = [axis for axis, size in enumerate(shape) if size == of_any]
    index = ir.IndexType.get()
    axes = (arith.ConstantOp(index, axis).result for axis in at)
    open_sizes = [tensor.DimOp(larger, axis).result for axis in axes]
    sizes, zeros, ones = (
        ir.DenseI64ArrayAttr.get(list(v)) for v in (shape, [0] * len(shape), [1] * len(shape))
    )
    return tensor.InsertSliceOp(value, larger, [], open_sizes, [], zeros, sizes, ones).result


def without_barriers(function: ir.Operation) -> list[ir.Operation]:
    """The slices of a function's arguments, of which passes may see what they are from now on."""
    found = []
    for op in _barriers(function):
        maker = op.operands[0].owner
        # A result may be a slice too, of what was computed.
        if maker.name == SLICE and isinstance(maker.operands[0].owner, ir.Block):
            found.append(maker.operation)
            _lift(op)
    return found


def stores_without_barriers(function: ir.Operation) -> list[ir.Operation]:
    """The stores of results into larger tensors, of which passes may see what they store."""
    found = []
    for op in _barriers(function):
        users = [use.owner.operation for use in op.results[0].uses]
        if [one.name for one in users] == [STORE]:
            found += users
            _lift(op)
    return found


def _barriers(function: ir.Operation) -> list[ir.Operation]:
    return [one.operation for one in function.regions[0].blocks[0] if one.name == BARRIER]


def _lift(barrier: ir.Operation) -> None:
    barrier.results[0].replace_all_uses_with(barrier.operands[0])
    barrier.erase()


def groups_of(reshape: ir.Operation) -> list[list[int]]:
    """The axes that a reshape makes of one another: of the side that has more."""
    return [
        [ir.IntegerAttr(one).value for one in group]
        for group in ir.ArrayAttr(reshape.attributes["reassociation"])
    ]


def steps_of(shape: Sequence[int]) -> list[int]:
    """Elements from one index to the next along each axis of a dense tensor."""
    return [math.prod(shape[at + 1 :]) for at in range(len(shape))]


def room_of(part: Sequence[int], larger: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The shape of a larger tensor, of other axes, that has a part in its corner as one of `shape`;
    None where there is none. `part` is the corner of `larger`."""
    cuts = sorted({*steps_of(part), *steps_of(shape), math.prod(part)}, reverse=True)
    if any(outer % inner for outer, inner in pairwise(cuts)):
        return None
    fine = list[tuple[int, int, int]]()  # of axes that both are made of: size, step, step in larger
    for outer, inner in pairwise(cuts):
        axes = zip(part, steps_of(part), steps_of(larger), strict=True)
        own, wide = next((own, wide) for size, own, wide in axes if own <= inner < own * size)
        fine.append((outer // inner, inner, inner // own * wide))
    found, before = list[int](), math.prod(larger)
    for size, own in zip(shape, steps_of(shape), strict=True):
        if size == 1:
            found.append(1)
            continue
        one = merged([(count, wide) for count, at, wide in fine if own <= at < own * size])
        if one is None or before % one[1] or before // one[1] < size:
            return None
        found.append(before // one[1])
        before = one[1]
    return found if before == 1 else None


def merged(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """(size, step) of adjacent axes of these as one; None where they have no one step."""
    parts = [one for one in axes if one[0] != 1] or [axes[-1]]
    if any(outer != size * step for (_, outer), (size, step) in pairwise(parts)):
        return None
    return math.prod(size for size, _ in parts), parts[-1][1]
