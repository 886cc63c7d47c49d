# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tagged contraction of a payload, read as named loops, and written back in another form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.ir import ops
from conv_compiler.ir.attributes import ROLE, ops_with_role

LOOPS = "conv_compiler.loops"

# One tensor axis as {loop: step}: {"ho": 2, "y": 1} is indexed by 2 * ho + y.
Axis = Mapping[str, int]
Index = tuple[Axis, ...]


@dataclass(frozen=True, kw_only=True)
class LoopNest:
    """d_weight[index 2] += image[index 0] * gradient[index 1] over named loops.

    `loops` run outermost first, parallel ones before reductions; `sizes` are their iteration
    counts.
    """

    op: ir.Operation
    loops: tuple[str, ...]
    sizes: Mapping[str, int]
    operands: tuple[ir.Value, ir.Value]
    indices: tuple[Index, Index, Index]

    @property
    def parallel(self) -> tuple[str, ...]:
        """Loops of which every iteration writes weights of its own."""
        written = {loop for axis in self.indices[2] for loop in axis}
        return tuple(loop for loop in self.loops if loop in written)

    @property
    def reductions(self) -> tuple[str, ...]:
        """Loops that are summed over."""
        return tuple(loop for loop in self.loops if loop not in self.parallel)


def find_nests(module: ir.Module) -> tuple[LoopNest, ...]:
    """Every op tagged `conv_compiler.role = "contraction"` that names its loops.

    Raises UnsupportedStrategy where there is none, or an index is not a sum of loops times steps.
    """
    if found := tuple(
        _read(op) for op in ops_with_role(module, "contraction") if LOOPS in op.attributes
    ):
        return found
    raise UnsupportedStrategy(
        "role contraction: on no op that names its loops; tag one, with conv_compiler.loops"
    )


def _read(op: ir.Operation) -> LoopNest:
    if LOOPS not in op.attributes:
        raise UnsupportedStrategy(
            f"contraction: its loops are not named by {LOOPS}; pass the payload as built"
        )
    loops = tuple(ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes[LOOPS]))
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    indices = tuple(tuple(_axis(expr, loops) for expr in map.results) for map in maps)
    sizes: dict[str, int] = {}
    for index, value in zip(indices, op.operands, strict=True):
        for axis, extent in zip(index, ops.shape_of(value), strict=True):
            if len(axis) == 1 and next(iter(axis.values())) == 1:
                sizes[next(iter(axis))] = extent
    return LoopNest(
        op=op,
        loops=loops,
        sizes={loop: sizes[loop] for loop in loops},
        operands=(op.operands[0], op.operands[1]),
        indices=(indices[0], indices[1], indices[2]),
    )


def _axis(expr: ir.AffineExpr, loops: tuple[str, ...]) -> Axis:
    if isinstance(expr, ir.AffineAddExpr):
        return {**_axis(expr.lhs, loops), **_axis(expr.rhs, loops)}
    if isinstance(expr, ir.AffineMulExpr):
        (loop,) = _axis(expr.lhs, loops)
        return {loop: expr.rhs.value}
    if isinstance(expr, ir.AffineDimExpr):
        return {loops[expr.position]: 1}
    raise UnsupportedStrategy(
        f"index {expr}: not a sum of loops times steps; pass the payload as built"
    )


def replace_nest(
    old: LoopNest,
    *,
    loops: Iterable[str],
    sizes: Mapping[str, int],
    operands: tuple[ir.Value, ir.Value],
    indices: tuple[Index, Index, Index],
    finish: Callable[[ir.Value], ir.Value] = lambda value: value,
) -> None:
    """Put the contraction over other loops in place of `old`.

    Called with the insertion point at `old.op`; `finish` turns the new result into a value of the
    old result's type.
    """
    names = tuple(loops)
    position = {name: ir.AffineDimExpr.get(i) for i, name in enumerate(names)}

    def expression(axis: Axis) -> ir.AffineExpr:
        terms = [
            position[loop] * step if step != 1 else position[loop] for loop, step in axis.items()
        ]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    written = [next(iter(axis)) for axis in indices[2]]
    element = ir.RankedTensorType(old.op.results[0].type).element_type
    result = ops.generic(
        operands,
        ops.filled([sizes[loop] for loop in written], element),
        [[expression(axis) for axis in index] for index in indices],
        len(names),
        len(names) - len(written),
        ops.multiply_add,
        {
            ROLE: ir.StringAttr.get("contraction"),
            LOOPS: ops.string_array(names),
        },
    )
    old.op.results[0].replace_all_uses_with(finish(result))
    erase_if_dead(old.op)


def erase_if_dead(op: object) -> None:
    """Erase an op without uses, then those of its operands that this leaves without any."""
    view = op if isinstance(op, ir.Operation) else getattr(op, "operation", None)
    if not isinstance(view, ir.Operation) or any(list(r.uses) for r in view.results):
        return
    owners: list[object] = []
    for value in view.operands:
        if value.owner not in owners:
            owners.append(value.owner)
    view.erase()
    for owner in owners:
        erase_if_dead(owner)
