# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lengthen loops of the contraction with zeros, so that tiles and split factors divide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Axis, Index, LoopNest, find_nests, replace_nest


@dataclass(frozen=True, kw_only=True)
class PadLoops:
    """Give each of `loops` its size in `sizes`; what is added is zeros, sliced off the result."""

    loops: tuple[str, ...]
    sizes: tuple[int, ...]

    name: ClassVar[str] = "pad-loops"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy for a size below the loop's."""
        wanted = dict(zip(self.loops, self.sizes, strict=True))
        for nest in find_nests(module):
            for loop, size in wanted.items():
                if (least := nest.sizes.get(loop)) is None:
                    raise UnsupportedStrategy(
                        f"loop {loop}: not of the contraction; pad some of {' '.join(nest.loops)}"
                    )
                if size < least:
                    raise UnsupportedStrategy(
                        f"size {size} of loop {loop}: below the loop's; give {least} or more"
                    )
            grown = {loop: size for loop, size in wanted.items() if size > nest.sizes[loop]}
            if grown:
                with ir.InsertionPoint(nest.op), nest.op.location:
                    _grow(nest, {**nest.sizes, **grown})


def _grow(nest: LoopNest, sizes: dict[str, int]) -> None:
    kept = ops.shape_of(nest.op.results[0])
    replace_nest(
        nest,
        loops=nest.loops,
        sizes=sizes,
        operands=(
            _extend(nest.operands[0], nest.indices[0], sizes),
            _extend(nest.operands[1], nest.indices[1], sizes),
        ),
        indices=nest.indices,
        finish=lambda value: ops.leading(value, kept),
    )


def extent(axis: Axis, sizes: dict[str, int]) -> int:
    """Elements an axis needs for all iterations of its loops."""
    return 1 + sum((sizes[loop] - 1) * step for loop, step in axis.items())


def _extend(value: ir.Value, index: Index, sizes: dict[str, int]) -> ir.Value:
    shape = ops.shape_of(value)
    high = [max(0, extent(a, sizes) - have) for a, have in zip(index, shape, strict=True)]
    return ops.pad(value, [0] * len(shape), high)
