# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that are slices of arguments, from the payload to the pass that places them."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from conv_compiler.ir import ops

SLICE, BARRIER = "tensor.extract_slice", "util.optimization_barrier"


def sliced(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The corner of `shape` of an argument, which no pass looks through; the argument itself where
    that is all of it."""
    part = ops.leading(value, shape)
    if part == value:
        return part
    barrier = ir.Operation.create(BARRIER, results=[part.type], operands=[part])
    result: ir.Value = barrier.results[0]
    return result


def without_barriers(function: ir.Operation) -> list[ir.Operation]:
    """The slices of a function's arguments, of which passes may see what they are from now on."""
    found = []
    for one in list(function.regions[0].blocks[0]):
        op = one.operation
        if op.name == BARRIER and op.operands[0].owner.name == SLICE:
            found.append(op.operands[0].owner.operation)
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    return found
