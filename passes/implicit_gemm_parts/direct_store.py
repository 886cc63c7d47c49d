# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an implicit GEMM's kernel stores the result itself, from sums in registers.

One op behind the contraction, over P's axes [s, g, m, t, n]: its body is the epilogue's, its result
has the axes of the weight. The scripts tile it and move the contraction inside, so the sums are
rounded and stored by the lanes that have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.ir.reads import read_per
from conv_compiler.ir.slices import MAP_STORE
from conv_compiler.ir.views import reshaped
from conv_compiler.passes.implicit_gemm_parts.stored_phases import Place, in_weight, moved


class StoredAxes(NamedTuple):
    """Axes of P (g, m, t, n) in the order in which the result has them, with their extents.

    `sizes` are the result's loops and their extents, in its order. `loops` are those on each axis;
    loops of one element are on the axis before. `channels_first` tells whether the columns n are
    (channels, taps).
    """

    names: tuple[str, ...]
    extents: tuple[int, ...]
    sizes: Mapping[str, int]
    loops: tuple[tuple[str, ...], ...]
    channels_first: bool

    def by_name(self, shape: Sequence[int]) -> list[int]:
        """Extents of a tensor [s, g, m, t, n] in the order of these axes, behind that of s."""
        names = _AXES if len(shape) == len(_AXES) else _AXES_WITHOUT_TAPS
        return [shape[names.index(name)] for name in ("s", *self.names)]


_AXES = ("s", "g", "m", "t", "n")
_AXES_WITHOUT_TAPS = ("s", "g", "m", "n")


def stored_axes(
    sizes: Mapping[str, int], taps_outside: bool, channels_outside: bool = False
) -> StoredAxes:
    """The axes of P in a result whose loops have these `sizes`, in its order.

    Raises UnsupportedStrategy where a column is no one axis of the result.
    """
    kind = {"g": "g", "k": "m", "c": "t" if channels_outside else "n"}
    tap, apart = "t" if taps_outside else "n", taps_outside or channels_outside
    # Taps of a single element lie wherever it is.
    order = [x for x in sizes if x in kind or sizes[x] > 1 or apart]
    runs = [(name, list(loops)) for name, loops in groupby(order, lambda x: kind.get(x, tap))]
    names = tuple(name for name, _ in runs)
    if len(set(names)) < len(names):
        raise UnsupportedStrategy(
            f"result stored by the matrix kernel: its axes {', '.join(sizes)} have "
            "columns in several places; use another form"
        )
    columns = next(loops for name, loops in runs if name == "n")
    starts = [list(sizes).index(loops[0]) for _, loops in runs][1:]
    cuts = zip((0, *starts), (*starts, len(sizes)), strict=True)
    return StoredAxes(
        names=names,
        extents=tuple(math.prod(sizes[loop] for loop in loops) for _, loops in runs),
        sizes=sizes,
        loops=tuple(tuple(sizes)[first:end] for first, end in cuts),
        channels_first=channels_outside or (len(columns) > 1 and columns[0] == "c"),
    )


def unfit() -> UnsupportedStrategy:
    """The error of a result whose elements are not some of P, each in one place."""
    return UnsupportedStrategy(
        "result stored by the matrix kernel: needs one part, and neither taps in rows nor merged "
        "groups; leave it out"
    )


@dataclass(frozen=True, kw_only=True)
class Store:
    """What becomes of P: the epilogue's result, where the result has P's `axes`, and behind it what
    the ops `moves` put elsewhere. `result` is the type of all that."""

    epilogue: ir.Operation | None
    result: ir.RankedTensorType
    axes: StoredAxes
    moves: Sequence[ir.Operation] = ()

    @property
    def type(self) -> ir.RankedTensorType:
        """Of the region's result: s, then `axes`; the result's own where elements are moved."""
        if self.moves:
            return self.result
        return ir.RankedTensorType.get([1, *self.axes.extents], self.result.element_type)

    def operands(self, sums: ir.Value) -> list[ir.Value]:
        """The epilogue's tensors behind the sums P, in their `operand_axes`, as large as P."""
        others = list(self.epilogue.operands)[1:-1] if self.epilogue else []
        full = self.axes.by_name(ops.shape_of(sums))
        found = []
        for value, axes in zip(others, self.operand_axes, strict=True):
            shape = [self.type.shape[axis] for axis in axes]
            more = [full[axis] - own for axis, own in zip(axes, shape, strict=True)]
            found.append(ops.pad(reshaped(value, shape), [0] * len(shape), more))
        return found

    @property
    def operand_axes(self) -> list[list[int]]:
        """The axes of `type` that each of these tensors has: all, those of its channels, or none of
        a number."""
        if self.epilogue is None:
            return []
        axes = {
            "element": list(range(len(self.type.shape))),
            "channel": sorted(1 + self.axes.names.index(name) for name in ("g", "m")),
            "call": [],
        }
        return [
            axes[read_per(self.epilogue, number)]
            for number in range(1, len(self.epilogue.operands) - 1)
        ]

    def apply(self, sums: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
        """The region's result from P.

        Where P is larger, or elements are moved, what the epilogue makes of it stays in P's axes: a
        masked store of its elements is what the scripts tile then.
        """
        is_masked = self.is_masked(sums)
        if self.epilogue is None:
            return self._masked(sums) if is_masked else in_stored_order(sums, self.axes)
        maps, empty = _stored_maps(sums, self.axes, self.type.element_type)
        maps[1:1] = [[maps[-1][axis] for axis in axes] for axes in self.operand_axes]
        if is_masked:
            maps[-1] = maps[0]
            empty = tensor.EmptyOp(ops.shape_of(sums), self.type.element_type).result
        role = {ROLE: ir.StringAttr.get("epilogue")}
        made = ops.generic_like(self.epilogue, [sums, *operands], empty, maps, len(maps[0]), role)
        return self._masked(made) if is_masked else made

    def is_masked(self, sums: ir.Value) -> bool:
        """Whether P has elements that the result has not, or has elsewhere."""
        has_rest = self.axes.by_name(ops.shape_of(sums)) != [1, *self.axes.extents]
        return has_rest or bool(self.moves)

    def _masked(self, values: ir.Value) -> ir.Value:
        return masked(values, self.axes, self.type, self.moves)

    def whole(self, value: ir.Value) -> ir.Value:
        """The region's result in the result's axes."""
        return reshaped(value, self.result.shape)


def in_stored_order(sums: ir.Value, axes: StoredAxes) -> ir.Value:
    """P[s, g, m, t, n] with its axes in the order of the result: the op that the scripts tile."""
    maps, empty = _stored_maps(sums, axes, ops.element_of(sums))
    role = {ROLE: ir.StringAttr.get("epilogue")}
    return ops.generic([sums], empty, maps, len(maps[0]), 0, lambda x, _: x, role)


def masked(
    values: ir.Value, axes: StoredAxes, type: ir.RankedTensorType, moves: Sequence[ir.Operation]
) -> ir.Value:
    """The result, of this type, of values [s, g, m, t, n] that may be more than it has elements.

    One `iree_linalg_ext.map_store`: the place of each value, and whether there is such a place. The
    type has s and the `axes`, or what the ops `moves` make of the result.
    """
    shape, index = ops.shape_of(values), ir.IndexType.get()
    names = _AXES if len(shape) == len(_AXES) else _AXES_WITHOUT_TAPS
    sizes = {"s": 1, **dict(zip(axes.names, axes.extents, strict=True))}
    empty = tensor.EmptyOp(type.shape, type.element_type).result
    made = ir.Operation.create(MAP_STORE, results=[type], operands=[values, empty], regions=1)
    block = made.regions[0].blocks.append(*(index for _ in shape))
    at = dict(zip(names, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        inside: list[ir.Value] = []
        for name, size in zip(names, shape, strict=True):
            if sizes[name] < size:
                end = arith.ConstantOp(index, sizes[name]).result
                inside.append(arith.CmpIOp(arith.CmpIPredicate.ult, at[name], end).result)
        place = Place([at[name] for name in sizes], inside)
        if moves:
            place = moved(Place(in_weight(axes.sizes, axes.channels_first, at), inside), moves)
        mask = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
        for one in place.inside:
            mask = arith.AndIOp(mask, one).result
        ir.Operation.create("iree_linalg_ext.yield", operands=[*place.indices, mask])
    result: ir.Value = made.results[0]
    return result


def _stored_maps(
    sums: ir.Value, axes: StoredAxes, element: ir.Type
) -> tuple[list[list[ir.AffineExpr]], ir.Value]:
    """Maps of P and of what is stored of it, and an empty tensor for that."""
    shape = ops.shape_of(sums)
    dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
    names = _AXES if len(shape) == len(_AXES) else _AXES_WITHOUT_TAPS
    stored = [dims[names.index(name)] for name in ("s", *axes.names)]
    return [dims, stored], tensor.EmptyOp(axes.by_name(shape), element).result
