# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Store a result that is a slice of a larger tensor where it lies, or by a kernel of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import flow, tensor

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.slices import (
    COLLAPSE,
    EXPAND,
    MAP_STORE,
    put,
    room_of,
    stores_without_barriers,
)

_OP, _EMPTY, _PLACES = "linalg.generic", "tensor.empty", "iree_linalg_ext.yield"


@dataclass(frozen=True, kw_only=True)
class StoreSlice:
    """Put the store of a result into the dispatch region that makes it, or into one with the op
    that makes it of a region's result.

    IREE makes a kernel that copies of a store that is left to it. That is so where the larger
    tensor has no view with the axes of that result, or where something else reads it.
    """

    name: ClassVar[str] = "store-slice"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        for function in module.body.operations:
            for op in stores_without_barriers(function.operation):
                _take_in(op)


def _take_in(store: ir.Operation) -> None:
    """Store a result in the region that makes it, where it can be."""
    reshapes, made = _behind(store.operands[0])
    if made is None or len(list(made.results[0].uses)) > 1:
        return
    larger = store.operands[1]
    part, whole = ops.shape_of(store.operands[0]), ops.shape_of(larger)
    shape = [size for size in ops.shape_of(made.results[0]) if size != 1]
    room = room_of(part, whole, shape)
    if room is None:
        return
    if made.name == _OP:
        if not all(_is_ready(one) for one in made.operands):
            return
        made = _in_region(made)
    with ir.InsertionPoint(made), made.location:
        larger = _viewed(larger, room)
        region = dispatches.retyped(made, larger.type)
    (end,) = (one.operation for one in region.regions[0].blocks[0] if one.name == "flow.return")
    with ir.InsertionPoint(end), region.location:
        result = end.operands[0]
        end.operands[0] = put(_without_units(result), larger)
    if not list(result.uses):  # another op makes it with fewer axes
        result.owner.operation.erase()
    with ir.InsertionPoint(store), store.location:
        store.results[0].replace_all_uses_with(_viewed(region.results[0], whole))
    for op in (store, *reshapes, made):
        op.erase()


def _viewed(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A tensor in memory with other axes: no reshape, which IREE would put into kernels."""
    if ops.shape_of(value) == list(shape):
        return value
    type = ir.RankedTensorType.get(list(shape), ops.element_of(value))
    return flow.TensorReshapeOp(type, value, [], []).result


def _without_units(value: ir.Value) -> ir.Value:
    """A tensor without its axes of one element: IREE 3.13 fails on a store that leaves some out."""
    groups: list[list[int]] = []
    for at, size in enumerate(shape := ops.shape_of(value)):
        if groups and (size == 1 or all(shape[one] == 1 for one in groups[-1])):
            groups[-1].append(at)
        else:
            groups.append([at])
    sizes = [math.prod(shape[at] for at in one) for one in groups]
    made = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if made is not None and made.name == MAP_STORE and len(sizes) < len(shape):
        return _stored_as(made, [max(one, key=shape.__getitem__) for one in groups])
    return ops.reshape(value, sizes, groups)


def _stored_as(store: ir.Operation, axes: Sequence[int]) -> ir.Value:
    """What a store of values into their places makes with these of its axes, the others of one.

    Of a reshape behind it IREE 3.13 makes another store, from a copy of the first one's result.
    """
    shape = [ops.shape_of(store.results[0])[axis] for axis in axes]
    type = ir.RankedTensorType.get(shape, ops.element_of(store.results[0]))
    empty = tensor.EmptyOp(shape, type.element_type).result
    made = ir.Operation.create(
        MAP_STORE, results=[type], operands=[store.operands[0], empty], regions=1
    )
    store.regions[0].blocks[0].append_to(made.regions[0])
    (end,) = (one.operation for one in made.regions[0].blocks[0] if one.name == _PLACES)
    *places, mask = end.operands
    with ir.InsertionPoint(end):
        ir.Operation.create(_PLACES, operands=[*(places[axis] for axis in axes), mask])
    end.erase()
    result: ir.Value = made.results[0]
    return result


def _behind(value: ir.Value) -> tuple[list[ir.Operation], ir.Operation | None]:
    """The reshapes behind what makes a value, the last one first, and the region or the op that
    does; none where it is something else, or something else reads it too."""
    reshapes: list[ir.Operation] = []
    while not isinstance(value.owner, ir.Block) and len(list(value.uses)) == 1:
        op = value.owner.operation
        if op.name in (dispatches.REGION, _OP):
            return reshapes, op
        if op.name not in (EXPAND, COLLAPSE):
            break
        reshapes.append(op)
        value = op.operands[0]
    return reshapes, None


def _is_ready(value: ir.Value) -> bool:
    """Whether an op has a value from memory: no other op would be put into its kernel."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in (EXPAND, COLLAPSE):
            return op.name in (dispatches.REGION, _EMPTY, "arith.constant")
        value = op.operands[0]
    return True


def _in_region(op: ir.Operation) -> ir.Operation:
    """An op as the one of a dispatch region."""
    with ir.InsertionPoint(op), op.location:
        region = dispatches.dispatch_region(op.results[0].type)
    op.results[0].replace_all_uses_with(region.results[0])
    with ir.InsertionPoint(region.regions[0].blocks[0]), op.location:
        shape = ops.shape_of(op.results[0])
        empty = tensor.EmptyOp(shape, ops.element_of(op.results[0])).result
        own = op.clone()
        own.operands[len(op.operands) - 1] = empty
        dispatches.dispatch_return(own.results[0])
    op.erase()
    return region
