# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cut one summed loop into parts: partial sums in parallel, then their sum in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import (
    Axis,
    Index,
    LoopNest,
    find_nests,
    replace_nest,
)
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import sum_parts


@dataclass(frozen=True, kw_only=True)
class SplitReduction:
    """Cut each loop of `loops` into as many neighbouring parts of equal length as `parts` says.

    The parts become outermost parallel loops, `part_n` for loop `n`. Partial results, in the
    accumulator's type, are summed in the order of the parts by an op of role `reduction`.
    """

    loops: tuple[str, ...]
    parts: tuple[int, ...]

    name: ClassVar[str] = "split-reduction"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place; UnsupportedStrategy where the parts do not divide."""
        wanted = {p: n for p, n in zip(self.loops, self.parts, strict=True) if n > 1}
        for nest in find_nests(module):
            for loop, parts in wanted.items():
                if loop not in nest.reductions or nest.sizes[loop] % parts:
                    raise UnsupportedStrategy(
                        f"{parts} parts of loop {loop}: not a summed loop they divide; "
                        f"pad it or pick one of {' '.join(nest.reductions)}"
                    )
            if wanted:
                with ir.InsertionPoint(nest.op), nest.op.location:
                    _split(nest, wanted)


def _split(nest: LoopNest, wanted: dict[str, int]) -> None:
    part = {loop: f"part_{loop}" for loop in wanted}
    length = {loop: nest.sizes[loop] // parts for loop, parts in wanted.items()}
    sizes = {**nest.sizes, **length, **{part[loop]: parts for loop, parts in wanted.items()}}

    def cut(axis: Axis) -> Axis:
        starts = {part[p]: step * length[p] for p, step in axis.items() if p in part}
        return {**starts, **axis}

    gradient, gradient_index = nest.operands[1], list[Axis]()
    for axis in nest.indices[1]:
        (loop,) = axis
        if loop in part:
            at = len(gradient_index)
            gradient = ops.split_axis(gradient, at, (wanted[loop], length[loop]))
            gradient_index.append({part[loop]: 1})
        gradient_index.append(axis)
    written: Index = (*({name: 1} for name in part.values()), *nest.indices[2])
    replace_nest(
        nest,
        loops=(*part.values(), *nest.loops),
        sizes=sizes,
        operands=(nest.operands[0], gradient),
        indices=(tuple(cut(axis) for axis in nest.indices[0]), tuple(gradient_index), written),
        finish=lambda partials: sum_parts(ops.merge_axes(partials, 0, len(part))),
    )
