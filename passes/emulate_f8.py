# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""8-bit floats on targets without instructions for them: bf16 operands, integer conversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ops_with_role
from conv_compiler.ir.f8 import BIAS, FRACTION, integer, widened
from conv_compiler.ir.loop_nest import LOOPS, find_nests
from conv_compiler.passes.implicit_gemm_parts.contraction import unpadded
from conv_compiler.problem.dtypes import DTYPES, DType

# Conversions by the op that stands for them.
CONVERSIONS = ("arith.extf", "arith.truncf")


@dataclass(frozen=True, kw_only=True)
class EmulateF8:
    """Multiply 8-bit floats as bf16, which holds each of them, and convert in integer arithmetic.

    The contraction's operands become bf16 in front of their padding, so that matrix instructions of
    bf16 do for chips that have none of 8 bits. IREE 3.13's own emulation makes 0 of what should be
    rounded up to the smallest normal number, and -480 of the code 0xff of f8E4M3FN, a NaN.
    """

    name: ClassVar[str] = "emulate-f8"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        with module.context, ir.Location.unknown():
            rows = {ops.element_type(row): row for row in DTYPES.values() if row.is_f8}
            # Sums alone have none, nor has a module whose kernels are written.
            products = any(LOOPS in op.attributes for op in ops_with_role(module, "contraction"))
            for nest in find_nests(module) if products else ():
                with ir.InsertionPoint(nest.op):
                    _widen_operands(nest.op, rows)
            found: list[ir.Operation] = []

            def visit(op: ir.Operation) -> ir.WalkResult:
                if op.name in CONVERSIONS:
                    found.append(op)
                return ir.WalkResult.ADVANCE

            module.operation.walk(visit)
            for op in found:
                _replace(op, rows)


def _widen_operands(op: ir.Operation, rows: dict[ir.Type, DType]) -> None:
    wide = ir.BF16Type.get()
    for number in (0, 1):
        padded = op.operands[number]
        if ir.RankedTensorType(padded.type).element_type not in rows:
            continue
        value, low, high = unpadded(padded)
        op.operands[number] = ops.pad(_widened(value, wide), low, high)
        op.regions[0].blocks[0].arguments[number].set_type(wide)


def _widened(value: ir.Value, wide: ir.Type) -> ir.Value:
    """The tensor in a wider type, by a kernel of its own, or the compiler puts it into the GEMM's.

    What narrowed the tensor, if anything did, goes along.
    """
    region = dispatches.dispatch_region(ir.RankedTensorType.get(ops.shape_of(value), wide))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name == "linalg.generic":
            value = owner.clone().results[0]
        dispatches.dispatch_return(ops.elementwise([value], wide, lambda x: ops.convert(x, wide)))
    result: ir.Value = region.results[0]
    return result


def _replace(op: ir.Operation, rows: dict[ir.Type, DType]) -> None:
    value, result = op.operands[0], op.results[0]
    narrow, wide = (
        (result.type, value.type) if op.name == "arith.truncf" else (value.type, result.type)
    )
    if narrow not in rows:
        return
    f32 = ir.F32Type.get()
    with ir.InsertionPoint(op):
        if op.name == "arith.truncf":
            new = _narrow(ops.convert(value, f32), rows[narrow])
        else:
            new = ops.convert(widened(value, rows[narrow]), wide)
    result.replace_all_uses_with(new)
    op.erase()


def _narrow(value: ir.Value, dtype: DType) -> ir.Value:
    """An f32 no larger than the type's largest number, or NaN, to the nearest even.

    In the type's normal range the fraction is rounded as an integer, whose carry goes up into the
    exponent as it should. Below, adding a power of two whose last place is the type's smallest
    number rounds to a multiple of that.
    """
    f32, bits = value.type, integer(0).type
    fraction, bias = dtype.mantissa_bits, dtype.exponent_bias
    shift = FRACTION - fraction
    code = arith.BitcastOp(bits, value).result
    sign = arith.ShRUIOp(code, integer(31)).result
    code = arith.AndIOp(code, integer(2**31 - 1)).result
    size = arith.BitcastOp(f32, code).result

    last = arith.AndIOp(arith.ShRUIOp(code, integer(shift)).result, integer(1)).result
    half = arith.AddIOp(last, integer(2 ** (shift - 1) - 1)).result
    rounded = arith.ShRUIOp(arith.AddIOp(code, half).result, integer(shift)).result
    normal = arith.SubIOp(rounded, integer((BIAS - bias) << fraction)).result

    power = 2.0 ** (FRACTION + 1 - bias - fraction)
    offset = arith.ConstantOp(f32, ir.FloatAttr.get(f32, power)).result
    sum = arith.BitcastOp(bits, arith.AddFOp(size, offset).result).result
    subnormal = arith.SubIOp(sum, arith.BitcastOp(bits, offset).result).result

    least = arith.ConstantOp(f32, ir.FloatAttr.get(f32, 2.0 ** (1 - bias))).result
    is_normal = arith.CmpFOp(arith.CmpFPredicate.OGE, size, least).result
    found = arith.SelectOp(is_normal, normal, subnormal).result
    if dtype.fnuz:  # its zero has no sign
        is_zero = arith.CmpIOp(arith.CmpIPredicate.eq, found, integer(0)).result
        sign = arith.SelectOp(is_zero, integer(0), sign).result
    signed = arith.OrIOp(found, arith.ShLIOp(sign, integer(7)).result).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    signed = arith.SelectOp(is_nan, integer(dtype.nan_code), signed).result
    byte = arith.TruncIOp(ir.IntegerType.get_signless(8), signed).result
    return arith.BitcastOp(ops.element_type(dtype), byte).result
