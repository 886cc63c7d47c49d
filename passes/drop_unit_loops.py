# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Take loops of one iteration out of the contraction: IREE drops the tag of an op that has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import (
    Index,
    LoopNest,
    find_nests,
    replace_nest,
)


@dataclass(frozen=True, kw_only=True)
class DropUnitLoops:
    """Remove every loop of one iteration but those of `keep`, and the tensor axes only they index.

    At least one parallel loop and one reduction stay, so that the op remains a contraction.
    """

    keep: tuple[str, ...] = ()

    name: ClassVar[str] = "drop-unit-loops"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the module in place."""
        for nest in find_nests(module):
            dropped = self.dropped(nest)
            if dropped:
                with ir.InsertionPoint(nest.op), nest.op.location:
                    _drop(nest, dropped)

    def dropped(self, nest: LoopNest) -> frozenset[str]:
        """The loops that go."""
        out: list[str] = []
        for kind in (nest.parallel, nest.reductions):
            units = [loop for loop in kind if nest.sizes[loop] == 1 and loop not in self.keep]
            out += units[: len(kind) - 1]
        return frozenset(out)


def _drop(nest: LoopNest, dropped: frozenset[str]) -> None:
    def shrink(index: Index) -> tuple[Index, list[bool]]:
        left = [{p: s for p, s in axis.items() if p not in dropped} for axis in index]
        return tuple(axis for axis in left if axis), [bool(axis) for axis in left]

    operands, indices = [], []
    for value, index in zip(nest.operands, nest.indices, strict=False):
        left, stays = shrink(index)
        first = _first_of(value, stays)
        # Pixels past the last window: an axis of one plain loop must be as long as the loop.
        sizes = [
            nest.sizes[next(iter(axis))] if list(axis.values()) == [1] else size
            for axis, size in zip(left, ops.shape_of(first), strict=True)
        ]
        operands.append(ops.leading(first, sizes))
        indices.append(left)
    written, stays = shrink(nest.indices[2])
    full = ops.shape_of(nest.op.results[0])
    replace_nest(
        nest,
        loops=[loop for loop in nest.loops if loop not in dropped],
        sizes=nest.sizes,
        operands=(operands[0], operands[1]),
        indices=(indices[0], indices[1], written),
        finish=lambda value: ops.reshape(value, full, unit_groups(stays)),
    )


def unit_groups(stays: list[bool]) -> list[list[int]]:
    """Reassociation that folds each unit axis into a neighbour that stays."""
    groups: list[list[int]] = []
    for axis, kept in enumerate(stays):
        if kept and groups and any(stays[i] for i in groups[-1]):
            groups.append([axis])
        elif groups:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _first_of(value: ir.Value, stays: list[bool]) -> ir.Value:
    """The slice at index 0 of the axes that go, without them."""
    shape = ops.shape_of(value)
    corner = [size if kept else 1 for size, kept in zip(shape, stays, strict=True)]
    left = [size for size, kept in zip(shape, stays, strict=True) if kept]
    return ops.reshape(ops.leading(value, corner), left, unit_groups(stays))
