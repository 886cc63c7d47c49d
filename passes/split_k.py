# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Split-K: cut gemm_k of a GEMM of im2col operands into parts, each with partial sums of its own.

Before, in a dispatch region:               After:
    P[g, m, ...] = sum over (q, r)              P[s, g, m, ...] = sum over the (q, r) of part s
                   of A * B                                       of A * B
                                            and behind the region, role `reduction`:
                                                sum over s, in rising order

The outermost summed axis is cut: q, or r where there is no q. It is rounded up to equal parts; what
is added reads as zero. A single part has an axis s as well: the kernel is the same for any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import dispatches, ops
from conv_compiler.ir.attributes import ROLE, ops_with_role
from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.im2col import IM2COL, lengthened
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import sum_parts


@dataclass(frozen=True, kw_only=True)
class SplitK:
    """Options: the number of parts, and the tile of gemm_k.

    A part of r has a whole number of tiles; a part of q two iterations or more, for it is a loop.
    """

    name: ClassVar[str] = "split-k"
    split_k: int
    tile_k: int

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if it is none of im2col operands."""
        with module.context, ir.Location.unknown():
            contraction = _find_gemm(module)
            whole = contraction.parent.operation
            with ir.InsertionPoint(whole):
                shape = [self.split_k, *ops.shape_of(whole.results[0])]
                type = ir.RankedTensorType.get(shape, ops.element_of(whole.results[0]))
                cut = dispatches.retyped(whole, type)
                self._cut(contraction, type)
                whole.results[0].replace_all_uses_with(sum_parts(cut.results[0]))
            whole.erase()

    def _cut(self, contraction: ir.Operation, type: ir.RankedTensorType) -> None:
        """Put the contraction with a loop over parts in place of the one without."""
        maps = [ir.AffineMapAttr(x).value for x in ir.ArrayAttr(contraction.attributes[_MAPS])]
        loops, parallel = maps[0].n_dims, len(maps[-1].results)
        part, inputs, indices = ir.AffineDimExpr.get(0), list[ir.Value](), list[list[object]]()
        for value, map in zip(list(contraction.operands)[:2], maps[:2], strict=True):
            dims = [ir.AffineDimExpr(x).position for x in map.results]
            axis = dims.index(parallel)
            length = self._part(ops.shape_of(value)[axis], loops - parallel)
            with ir.InsertionPoint(value.owner):
                longer = lengthened(value.owner, axis, self.split_k * length)
            with ir.InsertionPoint(contraction):
                inputs.append(ops.split_axis(longer, axis, (self.split_k, length)))
            moved = [ir.AffineDimExpr.get(dim + 1) for dim in dims]
            indices.append([*moved[:axis], part, *moved[axis:]])
        result = [ir.AffineDimExpr.get(i) for i in range(parallel + 1)]
        with ir.InsertionPoint(contraction):
            product = ops.generic(
                inputs,
                ops.filled(type.shape, type.element_type),
                [*indices, result],
                loops + 1,
                loops - parallel,
                ops.multiply_add,
                {ROLE: ir.StringAttr.get("contraction")},
            )
        contraction.results[0].replace_all_uses_with(product)
        erase_if_dead(contraction)

    def _part(self, length: int, axes: int) -> int:
        """Iterations of the cut axis that a part has, where so many axes are summed."""
        part = -(-length // self.split_k)
        return -(-part // self.tile_k) * self.tile_k if axes == 1 else max(part, 2)


_MAPS = "indexing_maps"


def _find_gemm(module: ir.Module) -> ir.Operation:
    """The contraction of two im2col ops in a dispatch region that returns it."""
    for op in ops_with_role(module, "contraction"):
        owners = [value.owner for value in list(op.operands)[:2]]
        if all(isinstance(x, ir.Operation) and x.name == IM2COL for x in map(_operation, owners)):
            return op
    raise UnsupportedStrategy(
        "split-k: no contraction of two im2col operands; run im2col first, and split-k once"
    )


def _operation(owner: object) -> object:
    return getattr(owner, "operation", owner)
