# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read the taps of a marked tensor in reverse order.

    read weight[..., t, c]    ->    read weight[..., last - t, c]

Masks stay: an element is there or not whatever tap it is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import REVERSED_READS
from conv_compiler.passes.main_loop.loop_ops import operation

_READ = "vector.transfer_read"


@dataclass(frozen=True, kw_only=True)
class ReadReversed:
    """The marked tensor has `taps` on its last axis but one, and its channels on the last one.

    UnsupportedStrategy where none is marked, or it is read other than by vectors of one tap.
    """

    name: ClassVar[str] = "read-reversed"
    taps: int

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        found: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if REVERSED_READS in op.attributes:
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        with module.context, ir.Location.unknown():
            reads = [operation(use.owner) for op in found for use in op.results[0].uses]
            if not reads:
                raise _refused()
            for read in reads:
                self._turn(read)

    def _turn(self, read: ir.Operation) -> None:
        """Let a read read the tap that is as far from the other end."""
        source = read.operands[0]
        if read.name != _READ or ops.shape_of(source)[-2] != self.taps:
            raise _refused()
        axis = len(ops.shape_of(source)) - 2
        along = ir.AffineMapAttr(read.attributes["permutation_map"]).value.results
        if any(one != ir.AffineDimExpr.get(axis + 1) for one in along):
            raise _refused()
        with ir.InsertionPoint(read):
            last = arith.ConstantOp(ir.IndexType.get(), self.taps - 1).result
            read.operands[1 + axis] = arith.SubIOp(last, read.operands[1 + axis]).result


def _refused() -> UnsupportedStrategy:
    return UnsupportedStrategy(
        "read-reversed: the kernel reads other than vectors of one tap; use another tile"
    )
