# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Main loops whose iterations depend on the tile of rows of their workgroup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import main_loops, operation

# The grid's axes: parts of gemm_k, groups, tiles of rows, and those of columns.
_GRID, _ROWS = "scf.forall", 2
# By entry: the first tile of rows that it is for.
Entries = Sequence[tuple[int, int]]


def loops_and_tiles(module: ir.Module) -> Iterator[tuple[ir.Operation, ir.Value]]:
    """Each main loop, and the number of its workgroup's tile of rows.

    Raises UnsupportedStrategy where there is none, or one outside a grid.
    """
    found = list(main_loops(module.operation))
    if not found:
        raise UnsupportedStrategy("main loop: none left; use a tile with more iterations")
    for loop in found:
        grid = loop
        while grid is not None and grid.name != _GRID:
            grid = grid.parent.operation if grid.parent else None
        if grid is None:
            raise UnsupportedStrategy("main loop: outside the grid; use another form")
        yield loop, grid.regions[0].blocks[0].arguments[_ROWS]


def constant(type: ir.Type, value: int) -> ir.Value:
    """A number of an integer type or of the index type."""
    made: ir.Value = arith.ConstantOp(type, ir.IntegerAttr.get(type, value)).result
    return made


def by_tile(tile: ir.Value, entries: Entries, type: ir.Type) -> ir.Value:
    """The value of the last entry whose first tile is not beyond a tile."""
    found = constant(type, entries[0][1])
    for (_, before), (first, value) in zip(entries, entries[1:], strict=False):
        if value == before:
            continue
        behind = arith.CmpIOp(
            arith.CmpIPredicate.uge, tile, constant(ir.IndexType.get(), first)
        ).result
        found = arith.SelectOp(behind, constant(type, value), found).result
    return found


def written(value: ir.Value) -> int | None:
    """The number that a value is written out as; None where it is computed."""
    if not isinstance(value.owner, ir.OpView | ir.Operation):
        return None
    op = operation(value.owner)
    return ir.IntegerAttr(op.attributes["value"]).value if op.name == "arith.constant" else None
