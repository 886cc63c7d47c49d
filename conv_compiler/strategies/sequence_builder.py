# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An entry sequence of a schedule, which holds the numbers: constants and `transform.include`s.

The scripts of mlir/ say which step follows which.
"""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import transform


class Sequence:
    """An entry sequence being written; `func` is the kernel's function."""

    def __init__(self, func: ir.Value) -> None:
        self.func = func

    def constant(self, value: int) -> ir.Value:
        """A number as a transform parameter."""
        i64 = ir.IntegerType.get_signless(64)
        param = ir.Type.parse("!transform.param<i64>")
        return transform.ParamConstantOp(param, ir.IntegerAttr.get(i64, value)).result

    def include(
        self,
        sequence: str,
        *operands: ir.Value | int,
        results: tuple[str, ...] = (),
        may_fail: bool = False,
    ) -> list[ir.Value]:
        """Run a named sequence of the script on the function and the operands.

        `results` are the types that it returns. One that `may_fail` leaves what it does not match
        as it is.
        """
        values = [self.constant(x) if isinstance(x, int) else x for x in operands]
        mode = ir.Attribute.parse("2 : i32" if may_fail else "1 : i32")  # suppress, propagate
        name = ir.FlatSymbolRefAttr.get(sequence)
        types = [ir.Type.parse(text) for text in results]
        op = transform.IncludeOp(types, name, mode, [self.func, *values])
        return list(op.results)
