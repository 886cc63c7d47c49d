# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the data of a copy come from: tensors behind zero pads, with rows as long as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iree.compiler import ir

from conv_compiler.ir import ops
from conv_compiler.ir.loop_nest import Axis, Index
from conv_compiler.passes.pair_products import PAIR


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tensor, the zeros around it by axis, and the element that each iteration reads."""

    value: ir.Value
    low: tuple[int, ...]
    high: tuple[int, ...]
    index: Index

    @classmethod
    def of(cls, value: ir.Value, index: Index) -> Source:
        """What is behind pads, also where unit axes were dropped after them."""
        value, low, high = _without_pads(value)
        return cls(value=value, low=tuple(low), high=tuple(high), index=index)

    def with_long_rows(
        self, ranges: Mapping[str, int], lanes: str, may_join: Callable[[Axis, Axis], bool]
    ) -> Source:
        """The same with the last axes joined, where their rows are read whole and have no pads.

        `may_join` is asked for the last axis, and for what it would become.
        """
        found = self
        while len(found.index) > 1 and lanes not in found.index[-2]:
            *shape, above, size = ops.shape_of(found.value)
            *before, outer, inner = found.index
            whole = extent_of(inner, ranges) == size and not found.low[-1] and not found.high[-1]
            if not whole or PAIR in outer or PAIR in inner or outer.keys() & inner.keys():
                break
            joined = {**{loop: step * size for loop, step in outer.items()}, **inner}
            if not may_join(inner, joined):
                break
            groups = [*([axis] for axis in range(len(shape))), [len(shape), len(shape) + 1]]
            found = Source(
                value=ops.reshape(found.value, [*shape, above * size], groups),
                low=(*found.low[:-2], found.low[-2] * size),
                high=(*found.high[:-2], found.high[-2] * size),
                index=(*before, joined),
            )
        return found


def extent_of(axis: Axis, ranges: Mapping[str, int]) -> int:
    """Elements along an axis that so many iterations of each loop reach."""
    return 1 + sum((ranges[loop] - 1) * step for loop, step in axis.items() if loop != PAIR)


def _without_pads(value: ir.Value) -> tuple[ir.Value, list[int], list[int]]:
    """The tensor behind zero pads, and the pads of each axis."""
    low = [0] * len(ops.shape_of(value))
    high = list(low)
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return value, low, high
        if owner.name == "tensor.pad":
            for pads, name in ((low, "static_low"), (high, "static_high")):
                for axis, size in enumerate(ir.DenseI64ArrayAttr(owner.attributes[name])):
                    pads[axis] += size
            value = owner.operands[0]
        elif (inner := _without_units(owner)) is not None:
            value = inner
        else:
            return value, low, high


def _without_units(owner: ir.Operation) -> ir.Value | None:
    """A padded tensor that only loses unit axes, with the pads outermost; None for another."""
    if owner.name != "tensor.collapse_shape" or isinstance(owner.operands[0].owner, ir.Block):
        return None
    pad = owner.operands[0].owner
    if pad.name != "tensor.pad":
        return None
    shape = ops.shape_of(owner.operands[0])
    groups = [
        [ir.IntegerAttr(i).value for i in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(owner.attributes["reassociation"])
    ]
    kept = [[axis for axis in group if shape[axis] > 1] for group in groups]
    if any(len(axes) > 1 for axes in kept):
        return None
    low, high = (
        list(ir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high")
    )
    stays = [axes[0] if axes else group[0] for axes, group in zip(kept, groups, strict=True)]
    if any(low[axis] or high[axis] for axis in range(len(shape)) if axis not in stays):
        return None
    inner = pad.operands[0]
    sizes = [ops.shape_of(inner)[axis] for axis in stays]
    with ir.InsertionPoint(owner):
        plain = ops.reshape(inner, sizes, groups)
        return ops.pad(plain, [low[axis] for axis in stays], [high[axis] for axis in stays])
