# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an implicit GEMM's kernel stores the result itself, from sums in registers.

One op behind the contraction, over P's axes [s, g, m, t, n]: its body is the epilogue's, its result
has the axes of the weight. The scripts tile it and move the contraction inside, so the sums are
rounded and stored by the lanes that have them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from iree.compiler import ir
from iree.compiler.dialects import tensor

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction


@dataclass(frozen=True, kw_only=True)
class Store:
    """What becomes of P: `axes` are those of P in the order in which the result has them."""

    epilogue: ir.Operation | None
    result: ir.RankedTensorType
    axes: tuple[str, ...]
    extents: tuple[int, ...]
    channels_first: bool

    @classmethod
    def of(cls, conv: Contraction, epilogue: ir.Operation | None, taps_outside: bool) -> Store:
        """The store of a contraction's result, behind its epilogue.

        Raises UnsupportedStrategy where a column is no one axis of the result.
        """
        sizes = dict(zip(conv.weight_loops, _sizes(conv), strict=True))
        kind = {"g": "g", "k": "m", "c": "n"}
        tap = "t" if taps_outside else "n"
        # Taps of a single element lie wherever it is.
        order = [x for x in conv.weight_order if x in kind or sizes[x] > 1 or taps_outside]
        runs = [(name, list(loops)) for name, loops in groupby(order, lambda x: kind.get(x, tap))]
        axes = tuple(name for name, _ in runs)
        if len(set(axes)) < len(axes):
            raise UnsupportedStrategy(
                f"result stored by the matrix kernel: its axes {', '.join(conv.weight_order)} have "
                "columns in several places; use another form"
            )
        columns = next(loops for name, loops in runs if name == "n")
        return cls(
            epilogue=epilogue,
            result=ir.RankedTensorType((epilogue or conv.op).results[0].type),
            axes=axes,
            extents=tuple(math.prod(sizes[loop] for loop in loops) for _, loops in runs),
            channels_first=len(columns) > 1 and columns[0] == "c",
        )

    @property
    def type(self) -> ir.RankedTensorType:
        """Of the region's result: s, then `axes`."""
        return ir.RankedTensorType.get([1, *self.extents], self.result.element_type)

    def operands(self) -> list[ir.Value]:
        """The epilogue's tensors behind the sums, in the axes of `type`."""
        others = list(self.epilogue.operands)[1:-1] if self.epilogue else []
        return [_reshaped(value, self.type.shape) for value in others]

    def apply(self, sums: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
        """The region's result from P."""
        rank = len(ops.shape_of(sums))
        dims = [ir.AffineDimExpr.get(i) for i in range(rank)]
        names = ("s", "g", "m", *(("t",) if rank > 4 else ()), "n")
        stored = [dims[names.index(name)] for name in ("s", *self.axes)]
        empty = tensor.EmptyOp(list(self.type.shape), self.type.element_type).result
        maps = [dims, *(stored for _ in operands), stored]
        role = {ROLE: ir.StringAttr.get("epilogue")}
        if self.epilogue is None:
            return ops.generic([sums], empty, maps, rank, 0, lambda x, _: x, role)
        return ops.generic_like(self.epilogue, [sums, *operands], empty, maps, rank, role)

    def whole(self, value: ir.Value) -> ir.Value:
        """The region's result in the result's axes."""
        return _reshaped(value, self.result.shape)


def _sizes(conv: Contraction) -> tuple[int, ...]:
    """Extents of `weight_loops`."""
    return (conv.groups, conv.gemm_m, *conv.taps, conv.channels)


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements in their order as a tensor of another shape."""
    old, new = ops.shape_of(value), list(shape)
    flat = ops.reshape(value, [math.prod(old)], [list(range(len(old)))])
    return ops.reshape(flat, new, [list(range(len(new)))])
