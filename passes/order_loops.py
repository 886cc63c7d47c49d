# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Order the parallel loops of the contraction, the last of them innermost in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Index, LoopNest, find_nests, replace_nest


@dataclass(frozen=True, kw_only=True)
class OrderLoops:
    """Order the parallel loops as `loops`; the last becomes the vector lanes.

    The result's axes follow the loops and are transposed back afterwards. An operand that the
    lanes index along any but its innermost axis is transposed first, or `as_it_lies` left to the
    kernel.
    """

    loops: tuple[str, ...]
    as_it_lies: bool = False

    name: ClassVar[str] = "order-loops"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy where `loops` are not the op's."""
        for nest in find_nests(module):
            if sorted(self.loops) != sorted(nest.parallel):
                raise UnsupportedStrategy(
                    f"loops {' '.join(self.loops)}: not the parallel loops of the contraction; "
                    f"order {' '.join(nest.parallel)}"
                )
            with ir.InsertionPoint(nest.op), nest.op.location:
                self._order(nest)

    def _order(self, nest: LoopNest) -> None:
        image, image_index = self._operand(nest.operands[0], nest.indices[0])
        gradient, gradient_index = self._operand(nest.operands[1], nest.indices[1])
        written: Index = tuple({loop: 1} for loop in self.loops)
        back = [written.index(axis) for axis in nest.indices[2]]
        replace_nest(
            nest,
            loops=(*self.loops, *nest.reductions),
            sizes=nest.sizes,
            operands=(image, gradient),
            indices=(image_index, gradient_index, written),
            finish=lambda value: ops.transpose(value, back),
        )

    def _operand(self, value: ir.Value, index: Index) -> tuple[ir.Value, Index]:
        lanes = [i for i, axis in enumerate(index) if self.loops[-1] in axis]
        if self.as_it_lies or not lanes or lanes[0] == len(index) - 1:
            return value, index
        order = [i for i in range(len(index)) if i != lanes[0]] + lanes
        return ops.transpose(value, order), tuple(index[i] for i in order)
