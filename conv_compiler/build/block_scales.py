# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The payload in front of a problem with block scales: its operands as the numbers that elements
and scales stand for.

A kernel for each operand makes them, in bf16. That is exact where a number is 0 or from 2^-126 to
bf16's largest, for elements have 4 significant bits at most. Smaller numbers are rounded to a
multiple of 2^-133; larger ones become infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conv_compiler.problem.block_scales import BIAS, NAN_CODE, row_of
from conv_compiler.problem.dtypes import DTYPES, WIDER, DType

if TYPE_CHECKING:
    from iree.compiler import ir

    from conv_compiler.problem.conv_problem import ConvProblem

# Packed elements that a thread may convert at once: as bf16 they are 16 bytes.
_AT_ONCE = 8


def decoded_operands(problem: ConvProblem, operands: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    """The operands without their scales, d as it is; all as they are of a problem without."""
    row = row_of(problem)
    if row is None:
        return tuple(operands)
    count = len(problem.operand_shapes)
    elements, scales = operands[:count], operands[count : 2 * count]
    if problem.n == 0:  # nothing reads them
        return (*elements, *operands[2 * count :])
    every = zip(elements, scales, problem.blocked_axes, strict=True)
    made = (_decoded(*one, row.size, problem.data_type) for one in every)
    return (*made, *operands[2 * count :])


def _decoded(elements: ir.Value, scales: ir.Value, axis: int, size: int, dtype: DType) -> ir.Value:
    """The tensor of elements times their scales, blocks of `size` along `axis`."""
    from iree.compiler import ir

    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.attributes import DECODED
    from conv_compiler.ir.f8 import widened

    type = ops.element_type(DTYPES[WIDER])
    if dtype.is_packed:
        return _unpacked(elements, scales, axis, size, dtype)
    shape = ops.shape_of(elements)
    blocks = ops.split_axis(elements, axis, (shape[axis] // size, size))
    outside = [at for at in range(len(shape) + 1) if at != axis + 1]

    def body(element: ir.Value, code: ir.Value) -> ir.Value:
        return ops.convert(scaled(widened(element, dtype), code), type)

    region = dispatches.dispatch_region(ir.RankedTensorType.get(ops.shape_of(blocks), type))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        made = ops.elementwise([blocks, scales], type, body, DECODED, axes={1: outside})
        dispatches.dispatch_return(made)
    return ops.merge_axes(region.results[0], axis, 2)


def _unpacked(bytes_: ir.Value, scales: ir.Value, axis: int, size: int, dtype: DType) -> ir.Value:
    """The same of packed elements: the last axis becomes groups of adjacent ones, and those of a
    group."""
    from iree.compiler import ir
    from iree.compiler.dialects import linalg

    from conv_compiler.ir import dispatches, ops
    from conv_compiler.ir.attributes import DECODED
    from conv_compiler.ir.f8 import number_of
    from conv_compiler.ir.packed import element_of_group

    type = ops.element_type(DTYPES[WIDER])
    (*shape, length), last = ops.shape_of(bytes_), len(ops.shape_of(bytes_)) - 1
    elements, group_bytes = dtype.packed
    times = math.gcd(length // group_bytes, size // elements, _AT_ONCE // elements)
    elements, group_bytes = times * elements, times * group_bytes
    groups = ops.split_axis(bytes_, last, (length // group_bytes, group_bytes))
    shape.append(length // group_bytes)
    along = size // elements if axis == last else size
    blocks = ops.split_axis(groups, axis, (shape[axis] // along, along))
    shape[axis : axis + 1] = [shape[axis] // along, along]
    dims = range(len(shape) + 1)
    outside = [at for at in dims if at != axis + 1]
    if axis == last:
        outside = outside[:-1]
    else:
        scales = ops.split_axis(scales, last, (shape[-1], elements))

    def body(code: ir.Value) -> ir.Value:
        *place, which = (linalg.IndexOp(at).result for at in dims)
        element = element_of_group(blocks, place, which, dtype)
        return ops.convert(scaled(number_of(element, dtype), code), type)

    whole = [*shape, elements]
    region = dispatches.dispatch_region(ir.RankedTensorType.get(whole, type))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        made = ops.mapped([scales], [outside], whole, type, body, DECODED)
        dispatches.dispatch_return(made)
    found = ops.merge_axes(region.results[0], len(shape) - 1, 2)
    return ops.merge_axes(found, axis, 2)


def scaled(value: ir.Value, code: ir.Value) -> ir.Value:
    """An f32 number times the scale of a code, an i8; NaN where that is none.

    By two factors, whose exponents are halves of the scale's: the codes 0 and 0xfe have no normal
    number of f32 each, but their halves have. Both are on one side of 1, so nothing is rounded, and
    nothing overflows, in between that would not in the end.
    """
    from iree.compiler import ir
    from iree.compiler.dialects import arith

    from conv_compiler.ir.f8 import FRACTION, integer

    bits = ir.IntegerType.get_signless(32)

    def power(exponent: ir.Value) -> ir.Value:
        biased = arith.AddIOp(exponent, integer(BIAS)).result
        return arith.BitcastOp(value.type, arith.ShLIOp(biased, integer(FRACTION)).result).result

    whole = arith.ExtUIOp(bits, code).result
    exponent = arith.SubIOp(whole, integer(BIAS)).result
    half = arith.ShRSIOp(exponent, integer(1)).result
    rest = arith.SubIOp(exponent, half).result
    product = arith.MulFOp(arith.MulFOp(value, power(half)).result, power(rest)).result
    is_nan = arith.CmpIOp(arith.CmpIPredicate.eq, whole, integer(NAN_CODE)).result
    nan = arith.ConstantOp(value.type, ir.FloatAttr.get(value.type, float("nan"))).result
    return arith.SelectOp(is_nan, nan, product).result
