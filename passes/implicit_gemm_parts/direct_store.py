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
from iree.compiler.dialects import tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE


class StoredAxes(NamedTuple):
    """Axes of P (g, m, t, n) in the order in which the result has them, with their extents, and
    whether the columns n are (channels, taps)."""

    names: tuple[str, ...]
    extents: tuple[int, ...]
    channels_first: bool


def stored_axes(sizes: Mapping[str, int], taps_outside: bool) -> StoredAxes:
    """The axes of P in a result whose loops have these `sizes`, in its order.

    Raises UnsupportedStrategy where a column is no one axis of the result.
    """
    kind = {"g": "g", "k": "m", "c": "n"}
    tap = "t" if taps_outside else "n"
    # Taps of a single element lie wherever it is.
    order = [x for x in sizes if x in kind or sizes[x] > 1 or taps_outside]
    runs = [(name, list(loops)) for name, loops in groupby(order, lambda x: kind.get(x, tap))]
    names = tuple(name for name, _ in runs)
    if len(set(names)) < len(names):
        raise UnsupportedStrategy(
            f"result stored by the matrix kernel: its axes {', '.join(sizes)} have "
            "columns in several places; use another form"
        )
    columns = next(loops for name, loops in runs if name == "n")
    return StoredAxes(
        names=names,
        extents=tuple(math.prod(sizes[loop] for loop in loops) for _, loops in runs),
        channels_first=len(columns) > 1 and columns[0] == "c",
    )


def unfit() -> UnsupportedStrategy:
    """The error of a result that has not the elements of P and no others."""
    return UnsupportedStrategy(
        "result stored by the matrix kernel: needs one part, whole tiles, and neither taps in rows "
        "nor merged groups; leave it out"
    )


@dataclass(frozen=True, kw_only=True)
class Store:
    """What becomes of P: the epilogue's result, of this type, where the result has P's `axes`."""

    epilogue: ir.Operation | None
    result: ir.RankedTensorType
    axes: StoredAxes

    @property
    def type(self) -> ir.RankedTensorType:
        """Of the region's result: s, then `axes`."""
        return ir.RankedTensorType.get([1, *self.axes.extents], self.result.element_type)

    def operands(self) -> list[ir.Value]:
        """The epilogue's tensors behind the sums, in the axes of `type`."""
        others = list(self.epilogue.operands)[1:-1] if self.epilogue else []
        return [_reshaped(value, self.type.shape) for value in others]

    def apply(self, sums: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
        """The region's result from P."""
        rank = len(ops.shape_of(sums))
        dims = [ir.AffineDimExpr.get(i) for i in range(rank)]
        names = ("s", "g", "m", *(("t",) if rank > 4 else ()), "n")
        stored = [dims[names.index(name)] for name in ("s", *self.axes.names)]
        empty = tensor.EmptyOp(list(self.type.shape), self.type.element_type).result
        maps = [dims, *(stored for _ in operands), stored]
        role = {ROLE: ir.StringAttr.get("epilogue")}
        if self.epilogue is None:
            return ops.generic([sums], empty, maps, rank, 0, lambda x, _: x, role)
        return ops.generic_like(self.epilogue, [sums, *operands], empty, maps, rank, role)

    def whole(self, value: ir.Value) -> ir.Value:
        """The region's result in the result's axes."""
        return _reshaped(value, self.result.shape)


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements in their order as a tensor of another shape."""
    old, new = ops.shape_of(value), list(shape)
    flat = ops.reshape(value, [math.prod(old)], [list(range(len(old)))])
    return ops.reshape(flat, new, [list(range(len(new)))])
