# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cut a summed loop into halves or quarters: a loop `pair` of 2 or 4 iterations, which one
instruction multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Axis, LoopNest, find_nests, replace_nest

PAIR = "pair"


@dataclass(frozen=True, kw_only=True)
class PairProducts:
    """Give the summed loop `loop`, of 2 n iterations, n of them; iteration i of the second half is
    its iteration n + i. The loop of the halves, or of as many parts as there are `products`, is the
    innermost one."""

    loop: str
    products: int = 2

    name: ClassVar[str] = "pair-products"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy where the loop has no such parts."""
        for nest in find_nests(module):
            if self.loop not in nest.reductions or nest.sizes[self.loop] % self.products:
                raise UnsupportedStrategy(
                    f"loop {self.loop}: not a summed loop of {self.products} parts of as many "
                    f"iterations; pad one of {' '.join(nest.reductions)}"
                )
            with ir.InsertionPoint(nest.op), nest.op.location:
                self._cut(nest)

    def _cut(self, nest: LoopNest) -> None:
        part = nest.sizes[self.loop] // self.products
        image = tuple(
            {PAIR: axis[self.loop] * part, **axis} if self.loop in axis else axis
            for axis in nest.indices[0]
        )
        at = next(i for i, axis in enumerate(nest.indices[1]) if self.loop in axis)
        gradient: list[Axis] = [*nest.indices[1][:at], {PAIR: 1}, *nest.indices[1][at:]]
        replace_nest(
            nest,
            loops=(*nest.loops, PAIR),
            sizes={**nest.sizes, self.loop: part, PAIR: self.products},
            operands=(
                nest.operands[0],
                ops.split_axis(nest.operands[1], at, (self.products, part)),
            ),
            indices=(image, tuple(gradient), nest.indices[2]),
        )
