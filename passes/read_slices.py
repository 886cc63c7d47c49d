# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read operands that are slices of larger tensors where they lie, or copy them first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.slices import (
    COLLAPSE,
    EXPAND,
    SLICE,
    groups_of,
    merged,
    steps_of,
    without_barriers,
)


@dataclass(frozen=True, kw_only=True)
class ReadSlices:
    """Put the slice of an argument, and the reshapes behind it, into the dispatch regions that use
    it. Where that cannot be, a kernel of its own copies the slice.

    It cannot where axes are merged that lie apart in the larger tensor, and not without `in_place`:
    IREE 3.13 gathers from a slice as if it were contiguous. What uses a slice outside of regions
    is left to IREE, `in_place`, which has a slice in the kernel that pads it.
    """

    in_place: bool

    name: ClassVar[str] = "read-slices"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        for function in module.body.operations:
            slices = without_barriers(function.operation)
            if self.in_place and slices:
                every = [one.operation for one in function.regions[0].blocks[0]]
                for region in (op for op in every if op.name == dispatches.REGION):
                    _take_in(region)
            for op in slices:
                if not self.in_place or _is_read_in_regions(op):
                    _copy(op)
                _erase_unused(op)


def _take_in(region: ir.Operation) -> None:
    """Clone what slices arguments into a region, and use it there."""
    block = region.regions[0].blocks[0]
    first, clones = block.operations[0], dict[ir.Operation, ir.Operation]()

    def cloned(chain: list[ir.Operation]) -> ir.Value:
        value = chain[0].operands[0]
        for op in chain:
            if op not in clones:
                clones[op] = op.clone(ir.InsertionPoint(first)).operation
                clones[op].operands[0] = value
            value = clones[op].results[0]
        return value

    def visit(op: ir.Operation) -> None:
        for number, operand in enumerate(op.operands):
            if (chain := _chain(operand, region)) and _lies_together(chain):
                op.operands[number] = cloned(chain)
        for inner in op.regions:
            for each in inner:
                for one in each:
                    visit(one.operation)

    for one in list(block):
        visit(one.operation)


def _chain(value: ir.Value, region: ir.Operation) -> list[ir.Operation]:
    """The slice of an argument, and the reshapes behind it, that make a value in front of a region;
    empty for other values."""
    found: list[ir.Operation] = []
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.parent.operation != region.parent.operation:
            return []
        if op.name not in (SLICE, EXPAND, COLLAPSE):
            return []
        found.insert(0, op)
        value = op.operands[0]
        if op.name == SLICE:
            return found if isinstance(value.owner, ir.Block) else []
    return []


def _lies_together(chain: list[ir.Operation]) -> bool:
    """Whether each axis that reshapes merge is one of equal steps in the larger tensor."""
    whole, shape = (ops.shape_of(one) for one in (chain[0].operands[0], chain[0].results[0]))
    axes = [*zip(shape, steps_of(whole), strict=True)]
    for op in chain[1:]:
        groups, made = groups_of(op), list[tuple[int, int]]()
        if op.name == EXPAND:
            sizes = ops.shape_of(op.results[0])
            for group, (_, step) in zip(groups, axes, strict=True):
                inner = [math.prod(sizes[at + 1 : group[-1] + 1]) for at in group]
                made += [(sizes[at], step * of) for at, of in zip(group, inner, strict=True)]
        else:
            for group in groups:
                if (one := merged([axes[at] for at in group])) is None:
                    return False
                made.append(one)
        axes = made
    return True


def _is_read_in_regions(op: ir.Operation) -> bool:
    """Whether a dispatch region uses a slice or what is reshaped from it."""
    users = [use.owner.operation for use in op.results[0].uses]
    return any(
        one.parent.operation != op.parent.operation
        or (one.name in (EXPAND, COLLAPSE) and _is_read_in_regions(one))
        for one in users
    )


def _copy(op: ir.Operation) -> None:
    """Put a slice into memory of its own, by a kernel of its own."""
    type, shape = op.results[0].type, ops.shape_of(op.results[0])
    with ir.InsertionPoint(op), op.location:
        region = dispatches.dispatch_region(type)
    op.results[0].replace_all_uses_with(region.results[0])
    with ir.InsertionPoint(region.regions[0].blocks[0]), op.location:
        part = op.clone().results[0]
        empty = tensor.EmptyOp(shape, type.element_type).result
        dims = [ir.AffineDimExpr.get(at) for at in range(len(shape))]
        dispatches.dispatch_return(
            ops.generic([part], empty, [dims, dims], len(shape), 0, lambda x, _: x)
        )


def _erase_unused(op: ir.Operation) -> None:
    """Erase an op and the reshapes behind it, as far as nothing uses them."""
    for use in list(op.results[0].uses):
        if use.owner.operation.name in (EXPAND, COLLAPSE):
            _erase_unused(use.owner.operation)
    if not list(op.results[0].uses):
        op.erase()
