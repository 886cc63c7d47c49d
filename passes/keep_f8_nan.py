"""Keep a negative NaN of f8E4M3FN one where the compiler emulates its conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith

# All but the sign: the only code of f8E4M3FN that is no number, besides its sign.
MAGNITUDE = 0x7F


@dataclass(frozen=True, kw_only=True)
class KeepF8Nan:
    """Behind each widening of f8E4M3FN select NaN for its two codes.

    IREE 3.13's emulation (on CPUs, and on GPUs without the type) makes -480 of the code 0xff.
    """

    name: ClassVar[str] = "keep-f8-nan"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "arith.extf" and isinstance(op.operands[0].type, ir.Float8E4M3FNType):
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            _mend(op)


def _mend(op: ir.Operation) -> None:
    narrow, wide = op.operands[0], op.results[0]
    byte = ir.IntegerType.get_signless(8, op.context)
    nan = ir.FloatAttr.get(wide.type, float("nan"), op.location)
    with ir.InsertionPoint(op), op.location:
        # A copy, so that every use of the first one is a use to replace.
        plain = op.clone().results[0]
        mask = arith.ConstantOp(byte, ir.IntegerAttr.get(byte, MAGNITUDE)).result
        code = arith.AndIOp(arith.BitcastOp(byte, narrow).result, mask).result
        is_nan = arith.CmpIOp(arith.CmpIPredicate.eq, code, mask).result
        mended = arith.SelectOp(is_nan, arith.ConstantOp(wide.type, nan).result, plain).result
    wide.replace_all_uses_with(mended)
    op.erase()
