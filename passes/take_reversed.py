# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Have a kernel read a tensor itself, and not one with the taps in reverse order.

    reversed[g, k, t, c] = weight[g, k, last - t, c]
    im2col(reversed)                                   ->    im2col(weight)

The kernel's reads are to be changed too: `passes/read_reversed.py` does so once they are there. The
scripts know of no op between a tensor and its im2col.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir.attributes import REVERSED


@dataclass(frozen=True, kw_only=True)
class TakeReversed:
    """No options. UnsupportedStrategy where a kernel has no such op, or several."""

    name: ClassVar[str] = "take-reversed"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            # What arranges a weight by computed places has no input.
            if REVERSED in op.attributes and len(op.operands) > 1:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        if len(found) != 1:
            raise UnsupportedStrategy(
                f"take-reversed: {len(found)} ops that reverse taps; give a kernel with one"
            )
        (op,) = found
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
