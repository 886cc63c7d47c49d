"""Make one loop of neighbouring summed loops: a 1x1, stride-1 problem becomes a (batched) GEMM."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.build import ops
from conv_compiler.loop_nest import (
    LoopNest,
    Index,
    find_nests,
    replace_nest,
)


@dataclass(frozen=True, kw_only=True)
class CollapsePointwise:
    """Merge runs of summed loops whose axes lie side by side in both operands.

    The merged loop keeps the name of its outermost part. A loop that a filter tap or a stride
    shifts is in no run, nor is one whose axis is longer than its trips.
    """

    name: ClassVar[str] = "collapse-pointwise"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        for nest in find_nests(module):
            if runs := mergeable_runs(nest):
                with ir.InsertionPoint(nest.op), nest.op.location:
                    _merge(nest, runs)


def mergeable_runs(nest: LoopNest) -> tuple[tuple[str, ...], ...]:
    """Longest runs of two or more reductions that can become one loop."""
    runs: list[list[str]] = []
    for loop in nest.reductions:
        if runs and _neighbours(nest, runs[-1][-1], loop):
            runs[-1].append(loop)
        else:
            runs.append([loop])
    return tuple(tuple(run) for run in runs if len(run) > 1)


def _neighbours(nest: LoopNest, outer: str, inner: str) -> bool:
    """Whether the axis of `inner` follows that of `outer`, both plain and full, in both operands."""
    for value, index in zip(nest.operands, nest.indices, strict=False):
        axes = list(index)
        if {outer: 1} not in axes or {inner: 1} not in axes:
            return False
        first, second = axes.index({outer: 1}), axes.index({inner: 1})
        extents = ops.shape_of(value)
        sizes = (nest.sizes[outer], nest.sizes[inner])
        if second != first + 1 or (extents[first], extents[second]) != sizes:
            return False
    return True


def _merge(nest: LoopNest, runs: tuple[tuple[str, ...], ...]) -> None:
    gone = {loop for run in runs for loop in run[1:]}
    sizes = dict(nest.sizes)
    sizes.update({run[0]: math.prod(nest.sizes[loop] for loop in run) for run in runs})

    def merged(value: ir.Value, index: Index) -> tuple[ir.Value, Index]:
        groups: list[list[int]] = []
        shape: list[int] = []
        for i, (axis, extent) in enumerate(zip(index, ops.shape_of(value), strict=True)):
            if set(axis) <= gone:
                groups[-1].append(i)
                shape[-1] *= extent
            else:
                groups.append([i])
                shape.append(extent)
        left = tuple(axis for axis in index if not set(axis) <= gone)
        return ops.reshape(value, shape, groups), left

    image, image_index = merged(nest.operands[0], nest.indices[0])
    gradient, gradient_index = merged(nest.operands[1], nest.indices[1])
    replace_nest(
        nest,
        loops=[loop for loop in nest.loops if loop not in gone],
        sizes=sizes,
        operands=(image, gradient),
        indices=(image_index, gradient_index, nest.indices[2]),
    )
