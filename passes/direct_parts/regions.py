# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels of the CPU that a pass writes have in common: the contraction that they take the
place of, and a dispatch region of workgroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.loop_nest import erase_if_dead, find_nests
from conv_compiler.passes.cpu_kernel.foralls import Piece, forall
from conv_compiler.passes.cpu_kernel.roundings import round_vectors
from conv_compiler.passes.depthwise_parts.operands import (
    Operand,
    Result,
    find_operand,
    find_result,
)

# Of the source, the weight, the result and the type of sums: the result, computed.
Write = Callable[[Operand, Operand, Result, ir.Type], ir.Value]


def rewrite(module: ir.Module, write: Write, rounding: str) -> None:
    """Put what is written in the place of the contraction, and of what brings its operands and its
    result into their places; UnsupportedStrategy if there is none or more than one.

    `rounding` is the instruction that rounds vectors, a key of ROUNDING_INSTRUCTIONS, or empty.
    """
    with module.context, ir.Location.unknown():
        nests = find_nests(module)
        if len(nests) != 1:
            raise UnsupportedStrategy(f"module: {len(nests)} contractions; give it as it was built")
        op = nests[0].op
        result = find_result(op.results[0])
        source, weight = find_operand(op.operands[0]), find_operand(op.operands[1])
        last = result.value.owner
        with ir.InsertionPoint(last):
            made = write(source, weight, result, ops.element_of(op.results[0]))
        result.value.replace_all_uses_with(made)
        erase_if_dead(last)
        if rounding:
            round_vectors(module.operation, rounding)


def by_workgroups(
    shape: Sequence[int],
    element: ir.Type,
    count: int,
    role: str,
    body: Callable[[ir.Value, ir.Value], Piece],
) -> ir.Value:
    """A tensor that so many workgroups make in a dispatch region of their own.

    `body` is given a workgroup's number and the tensor, and makes a piece of it. `role` is that of
    the region's op.
    """
    region = dispatches.dispatch_region(ir.RankedTensorType.get(list(shape), element))
    dispatches.count_workgroups(region)
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        out = tensor.EmptyOp(list(shape), element).result
        mapping = ["#iree_codegen.workgroup_mapping<x>"]
        made = forall((count,), out, mapping, lambda ids, out: body(ids[0], out))
        made.owner.operation.attributes[ROLE] = ir.StringAttr.get(role)
        dispatches.dispatch_return(made)
    found: ir.Value = region.results[0]
    return found
