"""Lengthen loops of the contraction with zeros, so that tiles and split factors divide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.build import ops
from conv_compiler.loop_nest import Axis, Index, find_nests, replace_nest
from conv_compiler.errors import UnsupportedStrategy


@dataclass(frozen=True, kw_only=True)
class PadLoops:
    """Give each loop in `loops` the size in `sizes`; what it adds is zeros, sliced off the result."""

    loops: tuple[str, ...]
    sizes: tuple[int, ...]

    name: ClassVar[str] = "pad-loops"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy for a size below the loop's."""
        wanted = dict(zip(self.loops, self.sizes, strict=True))
        for nest in find_nests(module):
            grown = {p: s for p, s in wanted.items() if s != nest.sizes.get(p)}
            for loop, size in grown.items():
                if size < (least := nest.sizes.get(loop, size + 1)):
                    raise UnsupportedStrategy(
                        f"size {size} of loop {loop}: below the loop's; give {least} or more"
                    )
            if not grown:
                continue
            sizes = {**nest.sizes, **grown}
            with ir.InsertionPoint(nest.op), nest.op.location:
                image = _extend(nest.operands[0], nest.indices[0], sizes)
                gradient = _extend(nest.operands[1], nest.indices[1], sizes)
                kept = ops.shape_of(nest.op.results[0])
                replace_nest(
                    nest,
                    loops=nest.loops,
                    sizes=sizes,
                    operands=(image, gradient),
                    indices=nest.indices,
                    finish=lambda value, kept=kept: ops.leading(value, kept),
                )


def extent(axis: Axis, sizes: dict[str, int]) -> int:
    """Elements an axis needs for all trips of its loops."""
    return 1 + sum((sizes[loop] - 1) * step for loop, step in axis.items())


def _extend(value: ir.Value, index: Index, sizes: dict[str, int]) -> ir.Value:
    shape = ops.shape_of(value)
    high = [max(0, extent(a, sizes) - have) for a, have in zip(index, shape, strict=True)]
    return ops.pad(value, [0] * len(shape), high)
