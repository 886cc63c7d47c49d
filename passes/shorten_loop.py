# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""End the main loop where its workgroup's tile of rows meets no more places of the window.

Runs behind the software pipeline, on a kernel that `passes/skip_taps.py` has rewritten. A pipelined
loop has fewer iterations than there are products: the last ones stand behind it. Those stay, and as
many are left out of the loop as its tile has no places for:

    for i = 0 to 14         ->        for i = 0 to 14 - (skipped by the tile of rows)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.main_loop.row_tiles import (
    by_tile,
    loops_and_tiles,
    tile_of,
    written,
)
from conv_compiler.problem.phase_taps import TapTable


@dataclass(frozen=True, kw_only=True)
class ShortenLoop(TapTable):
    """Options: those of `skip-taps`."""

    name: ClassVar[str] = "shorten-loop"

    def apply(self, module: ir.Module) -> None:
        """Bound the main loops; UnsupportedStrategy where too few iterations are in one, or none a
        round that may be left out."""
        skipped = [
            (first, (self.places - len(met)) * self.steps)
            for first, met in zip(self.first, self.met, strict=True)
        ]
        with module.context, ir.Location.unknown():
            for loop, started in list(loops_and_tiles(module)):
                lower, upper, step = (written(value) for value in list(loop.operands)[:3])
                if (
                    lower != 0
                    or upper is None
                    or step is None
                    or any(count > upper or count % step for _, count in skipped)
                ):
                    raise UnsupportedStrategy(
                        f"main loop from, to, by {lower}, {upper}, {step}: cannot leave out "
                        f"{sorted({count for _, count in skipped})} iterations; use another form"
                    )
                bounds = [(first, upper - count) for first, count in skipped]
                with ir.InsertionPoint(loop):
                    tile = tile_of(started, self)
                    loop.operands[1] = by_tile(tile, bounds, ir.IndexType.get())
