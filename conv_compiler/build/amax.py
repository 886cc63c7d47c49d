# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload behind the numbers of which the largest is asked for: they are rounded by a kernel of
its own, and reduced by two.

Without their sign floats have the order of their codes, and a NaN is above all of them. So the
largest code is that of the largest absolute value, or of a NaN where there is one, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from conv_compiler.problem.amax import split_ops

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem


def with_amax(
    problem: ConvProblem, numbers: ir.Value, extra: tuple[ir.Value, ...]
) -> tuple[ir.Value, ir.Value]:
    """The result and the largest absolute value, of the result's numbers in the type of its sums;
    `extra` has the factor behind them, where there is one."""
    return _rounded(problem, numbers, extra), _amax(numbers)


def _rounded(problem: ConvProblem, numbers: ir.Value, extra: tuple[ir.Value, ...]) -> ir.Value:
    from iree.compiler import ir

    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.scalar import Scalar, rounded

    type, (_, behind) = ops.element_type(problem.result_type), split_ops(problem)
    if behind is None and ops.element_of(numbers) == type:
        return numbers

    def body(*scalars: ir.Value) -> ir.Value:
        given = [Scalar(one) for one in scalars]
        return rounded(behind.applied(*given) if behind else given[0], type)

    region = dispatches.dispatch_region(ir.RankedTensorType.get(ops.shape_of(numbers), type))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        axes: dict[int, tuple[int, ...]] = {1: ()} if extra else {}
        dispatches.dispatch_return(ops.elementwise([numbers, *extra], type, body, axes=axes))
    result: ir.Value = region.results[0]
    return result


def _amax(numbers: ir.Value) -> ir.Value:
    """Of the inner axes, then of the outer ones: cut where each part has as many numbers as there
    are parts, or about.

    Either kernel runs over one axis. Of a reduction over several IREE 3.13 leaves out elements on
    GPUs: of 8 x 4 x 6 all but a third (docs/upstream/iree-reduction-on-gpus.md). In some layouts
    merging the axes copies the numbers.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import arith

    from conv_compiler.ir import dispatches, ops

    element, shape = ops.element_of(numbers), ops.shape_of(numbers)
    bits = ir.IntegerType.get_signless(ops.bits_of(element))

    def code(x: ir.Value) -> ir.Value:
        rest = arith.ConstantOp(bits, ir.IntegerAttr.get(bits, 2 ** (bits.width - 1) - 1)).result
        return arith.AndIOp(arith.BitcastOp(bits, x).result, rest).result

    cut = min(
        range(len(shape)), key=lambda axis: abs(math.prod(shape[:axis]) - math.prod(shape[axis:]))
    )
    groups = [*([axis] for axis in range(cut)), list(range(cut, len(shape)))]
    merged = ops.reshape(numbers, [*shape[:cut], math.prod(shape[cut:])], groups)
    first = dispatches.dispatch_region(ir.RankedTensorType.get(shape[:cut], bits))
    with ir.InsertionPoint(first.regions[0].blocks[0]):
        dispatches.dispatch_return(_largest(merged, cut, code))
    largest = first.results[0]
    if cut > 1:
        largest = ops.reshape(largest, [math.prod(shape[:cut])], [list(range(cut))])
    last = dispatches.dispatch_region(ir.RankedTensorType.get([], element))
    with ir.InsertionPoint(last.regions[0].blocks[0]):
        found = _largest(largest, 0, lambda x: x)
        dispatches.dispatch_return(
            ops.elementwise([found], element, lambda x: arith.BitcastOp(element, x).result)
        )
    result: ir.Value = last.results[0]
    return result


def _largest(value: ir.Value, kept: int, code: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The largest code along all axes but the first ones."""
    from iree.compiler import ir
    from iree.compiler.dialects import arith

    from conv_compiler.ir import ops

    shape = ops.shape_of(value)
    loops = [ir.AffineDimExpr.get(axis) for axis in range(len(shape))]
    type = ir.IntegerType.get_signless(ops.bits_of(ops.element_of(value)))
    return ops.generic(
        [value],
        ops.filled(shape[:kept], type),
        [loops, loops[:kept]],
        len(loops),
        len(loops) - kept,
        lambda x, most: arith.MaxSIOp(code(x), most).result,
    )
