# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the sums of a weight gradient's tile lie in the weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from conv_compiler.passes.depthwise_parts.arithmetic import below, both, cut, linear
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction

Found = tuple[ir.Value, ir.Value | None]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a weight gradient's GEMM.

    A tap has those of `channels` input channels, which are rounded up to whole pieces, or those of
    `merged` groups. Where these do not come in blocks, or where groups are merged, the columns of
    the taps follow one another (`joins_taps`): `count` has all of them, or those of one tap.
    """

    channels: int
    merged: int
    joins_taps: bool
    count: int


@dataclass(frozen=True, kw_only=True)
class WeightPlaces:
    """Places in a weight, or in partial sums of it that lie as it does."""

    conv: Contraction
    columns: Columns

    @property
    def adjacent(self) -> int:
        """Adjacent columns that lie side by side in the weight."""
        return self.conv.channels if self.conv.weight_steps["c"] == 1 else 1

    def start(self, part: ir.Value, group: ir.Value, taps: Sequence[ir.Value]) -> ir.Value:
        """The place of the first weight of a part, of the groups of a workgroup, and of a tap."""
        steps, total = self.conv.weight_steps, math.prod(self.conv.weight_sizes.values())
        found = linear(group, steps["g"] * self.columns.merged, linear(part, total))
        return found if self.columns.joins_taps else self._taps(taps, found)

    def at(self, row: ir.Value, column: ir.Value, size: tuple[int, int]) -> Found:
        """Elements from there to a row and a column, and whether there is such a weight, for tiles
        of this size."""
        conv, columns = self.conv, self.columns
        steps = conv.weight_steps
        rows = conv.gemm_m * columns.merged
        tests = [
            below(row, rows) if rows % size[0] else None,
            below(column, columns.count) if columns.count % size[1] else None,
        ]
        found, channel = None, column
        if columns.joins_taps:
            *taps, channel = cut(column, [*conv.taps, columns.channels])
            found = self._taps(taps)
        if columns.merged > 1:
            of_row, row = cut(row, [columns.merged, conv.gemm_m])
            of_column, channel = cut(channel, [columns.merged, conv.channels])
            tests.append(arith.CmpIOp(arith.CmpIPredicate.eq, of_row, of_column).result)
            found = linear(of_row, steps["g"], 0 if found is None else found)
        elif columns.joins_taps and columns.channels > conv.channels:
            tests.append(below(channel, conv.channels))
        at = linear(channel, steps["c"], 0 if found is None else found)
        return linear(row, steps["k"], at), both(*tests)

    def _taps(self, taps: Sequence[ir.Value], found: ir.Value | int = 0) -> ir.Value:
        for name, tap in zip(self.conv.weight_loops[2:-1], taps, strict=True):
            found = linear(tap, self.conv.weight_steps[name], found)
        assert not isinstance(found, int)
        return found
