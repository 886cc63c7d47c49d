# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result of kernels with the pixels of a row in the lanes: the op on the sums, and what is
written of a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iree.compiler import ir

from conv_compiler.passes.cpu_kernel.indices import constant, plus, times
from conv_compiler.passes.cpu_kernel.shuffles import part_of
from conv_compiler.passes.direct_parts.packing import in_all_lanes, loaded, stored

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Result
    from conv_compiler.problem.plane_sizes import PlaneSizes

# A result channel and a row of a workgroup's, and the column where a vector begins.
Pixels = tuple[ir.Value, ir.Value, ir.Value]


@dataclass(frozen=True, kw_only=True)
class PlanePlace:
    """Where a plane's result lies: the plane's number in the workgroup and among all planes, its
    group, and the first row and result channel of the workgroup."""

    number: ir.Value
    plane: ir.Value
    group: ir.Value
    top: ir.Value
    channel: ir.Value


class PlaneResults:
    """The result of one problem."""

    def __init__(self, options: PlaneSizes, result: Result) -> None:
        self.options, self.result, self.extra = options, result, result.extra()
        self.row, self.column = options.slides

    def written(
        self,
        out: ir.Value,
        sums: list[ir.Value],
        place: PlanePlace,
        at: tuple[ir.Value, ir.Value, int],
        begins: list[ir.Value],
    ) -> ir.Value:
        """The piece with a tile of the result, of some rows from a result channel and a row on."""
        first, row, size = at
        number = 0
        for behind in range(self.options.block):
            channel = plus(first, constant(behind))
            for i in range(size):
                here = plus(row, constant(i))
                for begin in begins:
                    for column, value in self.pieces(sums[number], place, (channel, here, begin)):
                        out = stored(value, out, [place.number, channel, here, column])
                    number += 1
        return out

    def pieces(
        self, sums: ir.Value, place: PlanePlace, at: Pixels
    ) -> list[tuple[ir.Value, ir.Value]]:
        """The columns where pieces of a vector begin, and what is written there: one piece, or two
        powers of two where a row has fewer pixels."""
        outs, lanes = self.column.outs, self.options.lanes
        channel, row, begin = at
        if outs >= lanes:
            return [(begin, self.finished(sums, place, at))]
        is_whole = all(one.per != "element" for one in self.extra)
        if is_whole:  # the op on all lanes at once: those without a pixel are not written
            sums = self.finished(sums, place, at)
        width = 1 << (outs.bit_length() - 1)
        found = []
        for first in (0, outs - width) if outs > width else (0,):
            column = plus(begin, constant(first))
            value = part_of(sums, first, width)
            if not is_whole:
                value = self.finished(value, place, (channel, row, column))
            found.append((column, value))
        return found

    def finished(self, sums: ir.Value, place: PlanePlace, at: Pixels) -> ir.Value:
        """Pixels of the result behind the op on the sums."""
        options = self.options
        (lanes,) = ir.VectorType(sums.type).shape
        channel = plus(place.channel, at[0])
        line = plus(times(place.plane, options.results), channel)
        line = plus(times(line, self.row.outs), place.top, at[1])
        places = {
            "element": plus(times(line, self.column.outs), at[2]),
            "channel": plus(times(place.group, options.results), channel),
        }
        found = []
        for one in self.extra:
            read = in_all_lanes if one.per == "channel" else loaded
            found.append(one.read(read, places, lanes))
        return self.result.finished(sums, found)
