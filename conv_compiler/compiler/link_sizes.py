# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function of a module of several sizes that chooses one by the shapes of its operands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, cf, hal

from conv_compiler.compiler.link import VIEW, called, declared, main_function, returned, stated
from conv_compiler.problem.conv_problem import ConvProblem
from conv_compiler.problem.directions import STATED_FUNCTIONS
from conv_compiler.problem.sizes import Sizes, called_shapes

# IREE's status of a call that is refused.
_INVALID_ARGUMENT = 3
_SHAPE = re.compile(r"(?<=tensor<)(?:(?:\d+|\?)x)*")


def sizes_main(sizes: Sizes, functions: Sequence[ir.Operation]) -> None:
    """`@main`, which looks at the dimensions that tell sizes apart, and calls the function of the
    size that they are of.

    That function looks at all others itself. A call whose operands are of no size fails.
    """
    every = [declared(one) for one in functions]
    operands = _open([one for one, _ in every])
    results = _open([one for _, one in every])
    shared = {name: text for one in functions for name, text in stated(one).items()}
    block = main_function(
        operands, results, {**shared, STATED_FUNCTIONS: ",".join(sizes.functions)}
    )
    given, body = list(block.arguments), block.region
    for name, problem in zip(sizes.functions, sizes.problems, strict=True):
        there, next_one = body.blocks.append(), body.blocks.append()
        with ir.InsertionPoint(block):
            cf.CondBranchOp(_is_of(sizes, problem, given), [], [], there, next_one)
        with ir.InsertionPoint(there):
            returned(called(name, given, len(results)))
        block = next_one
    with ir.InsertionPoint(block):
        # An op that is never reached would let the compiler drop the last comparison.
        i32 = ir.IntegerType.get_signless(32)
        ir.Operation.create(
            "util.status.check_ok",
            operands=[arith.ConstantOp(i32, _INVALID_ARGUMENT).result],
            attributes={"message": ir.StringAttr.get(f"operands: of no size of {sizes.name}")},
        )
        nothing = [ir.Operation.create("util.null", results=[ir.Type.parse(VIEW)]) for _ in results]
        returned([one.result for one in nothing])


def _is_of(sizes: Sizes, problem: ConvProblem, given: Sequence[ir.Value]) -> ir.Value:
    """Whether the operands of a call have the dimensions of a size that tell it from others."""
    index, bit = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    shapes = called_shapes(problem)
    found = arith.ConstantOp(bit, 1).result
    for operand, axis in sizes.telling:
        size = arith.ConstantOp(index, shapes[operand][axis]).result
        at = ir.IntegerAttr.get(index, axis)
        here = hal.BufferViewDimOp(given[operand], at).result
        same = arith.CmpIOp(arith.CmpIPredicate.eq, here, size).result
        found = arith.AndIOp(found, same).result
    return found


def _open(every: Sequence[Sequence[str]]) -> list[str]:
    """Types of tensors that all sizes have, with `?` for what is not the same in all."""
    return [_joined(types) for types in zip(*every, strict=True)]


def _joined(types: Sequence[str]) -> str:
    shapes = [(_SHAPE.search(one) or [""])[0].split("x")[:-1] for one in types]
    dims = [sizes[0] if len(set(sizes)) == 1 else "?" for sizes in zip(*shapes, strict=True)]
    return _SHAPE.sub("".join(f"{size}x" for size in dims), types[0], count=1)
