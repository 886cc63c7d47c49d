"""Cut a summed loop into halves: a loop `pair` of two trips, which one instruction multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.build import ops
from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.loop_nest import Axis, LoopNest, find_nests, replace_nest

PAIR = "pair"


@dataclass(frozen=True, kw_only=True)
class PairProducts:
    """Give the summed loop `loop`, of 2 n trips, n of them; trip i of the second half is its trip
    n + i. The loop of the halves is the innermost one."""

    loop: str

    name: ClassVar[str] = "pair-products"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy where the loop has no halves."""
        for nest in find_nests(module):
            if self.loop not in nest.reductions or nest.sizes[self.loop] % 2:
                raise UnsupportedStrategy(
                    f"loop {self.loop}: not a summed loop of an even number of trips; "
                    f"pad one of {' '.join(nest.reductions)}"
                )
            with ir.InsertionPoint(nest.op), nest.op.location:
                self._halve(nest)

    def _halve(self, nest: LoopNest) -> None:
        half = nest.sizes[self.loop] // 2
        image = tuple(
            {PAIR: axis[self.loop] * half, **axis} if self.loop in axis else axis
            for axis in nest.indices[0]
        )
        at = next(i for i, axis in enumerate(nest.indices[1]) if self.loop in axis)
        gradient: list[Axis] = [*nest.indices[1][:at], {PAIR: 1}, *nest.indices[1][at:]]
        replace_nest(
            nest,
            loops=(*nest.loops, PAIR),
            sizes={**nest.sizes, self.loop: half, PAIR: 2},
            operands=(nest.operands[0], ops.split_axis(nest.operands[1], at, (2, half))),
            indices=(image, tuple(gradient), nest.indices[2]),
        )
