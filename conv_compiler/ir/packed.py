# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 4 and 6 bits in tensors of bytes: read one by one, and put in bytes again.

Adjacent elements are in groups that fill whole bytes (`DType.packed`). Element j of a group has the
bits j * bits to (j + 1) * bits - 1 of its bytes, the first byte lowest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from conv_compiler.ir import ops
from conv_compiler.problem.dtypes import DType

_BYTE = 8


def element_of_group(
    groups: ir.Value, place: Sequence[ir.Value], which: ir.Value, dtype: DType
) -> ir.Value:
    """The code of an element as an i32: `which`, an index, of the group at a place of a tensor
    whose last axis has the bytes of a group, or of several adjacent ones."""
    size = ops.shape_of(groups)[-1]
    bit = arith.MulIOp(which, index(dtype.bits)).result
    first = arith.DivUIOp(bit, index(_BYTE)).result
    word = _byte(groups, [*place, first])
    if _BYTE % dtype.bits:  # the element may reach into the next byte
        last = index(size - 1)
        following = arith.MinUIOp(arith.AddIOp(first, index(1)).result, last).result
        high = arith.ShLIOp(_byte(groups, [*place, following]), _integer(_BYTE)).result
        word = arith.OrIOp(word, high).result
    rest = arith.IndexCastOp(word.type, arith.RemUIOp(bit, index(_BYTE)).result).result
    shifted = arith.ShRUIOp(word, rest).result
    return arith.AndIOp(shifted, _integer(2**dtype.bits - 1)).result


def packed(
    shape: Sequence[int],
    dtype: DType,
    code: Callable[[list[ir.Value], ir.Value], ir.Value],
) -> ir.Value:
    """A tensor of bytes, of groups of elements in `shape` but for an axis behind it with the bytes
    of a group. `code` gives that of an element, an i32, by the group's place and its own."""
    elements, size = dtype.packed
    byte = ir.IntegerType.get_signless(8)

    def body() -> ir.Value:
        *place, at = (linalg.IndexOp(axis).result for axis in range(len(shape) + 1))
        word = code(place, index(0))
        for number in range(1, elements):
            own = arith.ShLIOp(code(place, index(number)), _integer(number * dtype.bits)).result
            word = arith.OrIOp(word, own).result
        bits = arith.MulIOp(at, index(_BYTE)).result
        shifted = arith.ShRUIOp(word, arith.IndexCastOp(word.type, bits).result).result
        return arith.TruncIOp(byte, shifted).result

    return ops.mapped([], [], [*shape, size], byte, body)


def index(value: int) -> ir.Value:
    """A constant index."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


def _byte(groups: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
    """A byte of a tensor as an i32."""
    found = tensor.ExtractOp(groups, list(place)).result
    return arith.ExtUIOp(ir.IntegerType.get_signless(32), found).result


def _integer(value: int) -> ir.Value:
    type = ir.IntegerType.get_signless(32)
    return arith.ConstantOp(type, ir.IntegerAttr.get(type, value)).result
