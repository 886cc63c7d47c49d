# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Main loops whose iterations depend on the tile of rows of their workgroup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import affine, arith

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.loop_ops import main_loops, operation

if TYPE_CHECKING:
    from conv_compiler.problem.phase_taps import TapTable

# The grid's axes: parts of gemm_k, groups, tiles of rows, and those of columns.
_GRID, _ROWS = "scf.forall", 2
# First tiles of rows, and what holds from each of them on.
Entries = Sequence[tuple[int, int]]


def loops_and_tiles(module: ir.Module) -> Iterator[tuple[ir.Operation, ir.BlockArgument]]:
    """Each main loop, and which of its grid's tiles of rows a workgroup has, as it starts them.

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


def tile_of(started: ir.Value, tiles: TapTable) -> ir.Value:
    """The tile of rows of a workgroup, from the number of its start."""
    if not tiles.last_first:
        return started
    backwards = ir.AffineMap.get(1, 0, [tiles.last_first - ir.AffineDimExpr.get(0)])
    found: ir.Value = affine.AffineApplyOp(backwards, [started]).result
    return found


def constant(type: ir.Type, value: int) -> ir.Value:
    """A number of an integer type or of the index type."""
    made: ir.Value = arith.ConstantOp(type, ir.IntegerAttr.get(type, value)).result
    return made


def by_tile(tile: ir.Value, entries: Entries, type: ir.Type) -> ir.Value:
    """The value of the last entry whose first tile is not beyond a tile."""
    found = constant(type, entries[0][1])
    for (_, before), (first, value) in pairwise(entries):
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
