# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How both operands of a tiling come from memory to LDS, as lanes then read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.strategies.gpu.lds_banks import Item, LdsRow, Pair
from conv_compiler.strategies.gpu.lds_copies import Copy, Memory, copy_of, transposed_padding
from conv_compiler.strategies.gpu.loop_order import along_gemm_k
from conv_compiler.strategies.gpu.operand_memory import adjacent_channels, pitches
from conv_compiler.strategies.gpu.tilings import item_of, transposed_sides

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target


def operand_copies(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma
) -> tuple[Copy, Copy]:
    """The copies of operands a and b."""
    m, n, k = tiling.workgroup
    threads = math.prod(tiling.subgroups) * target.subgroup_size, target.subgroup_size
    ways = _Ways(item_of(problem, target), mma, tiling.loads_to_lds, threads)
    sides = zip(
        ((m, mma.m, tiling.copy_a), (n, mma.n, tiling.copy_b)),
        _memories(problem, target, tiling),
        transposed_sides(problem, target, mma, tiling),
        strict=True,
    )
    a, b = (
        ways.transposed(unit, piece, memory, (side, k))
        if transposed
        else ways.plain(piece, memory, (side, k))
        for (side, unit, piece), memory, transposed in sides
    )
    return a, b


def _memories(problem: ConvProblem, target: Target, tiling: GpuTiling) -> tuple[Memory, Memory]:
    """How operands a and b lie in memory."""
    channels = adjacent_channels(problem, tiling.merged_groups)
    along_a, along_b = along_gemm_k(problem, target)
    pitch = pitches(problem)
    # Adjacent taps lengthen a run, where nothing lies between the channels of two pixels.
    in_columns = not (tiling.taps_in_rows or tiling.taps_outside)
    across = problem.filter[-1]
    taps_a = across if tiling.taps_in_rows and pitch.gradient == channels.gradient else 1
    taps_b = across if in_columns and pitch.image == channels.image else 1
    return (
        Memory(
            adjacent=(channels.gradient, along_a),
            run=(taps_a * channels.gradient, along_a),
            pitch=pitch.gradient,
        ),
        Memory(
            adjacent=(channels.image, along_b),
            run=(taps_b * channels.image, along_b),
            pitch=pitch.image,
        ),
    )


def _again(found: Copy, whole: Copy) -> Copy:
    """A copy whose loads read a step of rows each; that of `whole` rows reads each line once."""
    again = min(found.line_bytes, found.loads * whole.line_bytes)
    return found._replace(line_bytes=whole.line_bytes, again_bytes=again)


@dataclass(frozen=True)
class _Ways:
    """The ways of a tile to LDS; `threads` are those of a workgroup, and of a wave."""

    item: Item
    mma: Mma
    loads_to_lds: bool
    threads: Pair

    def plain(self, piece: Pair, memory: Memory, tile: Pair) -> Copy:
        """The copy of an operand that lanes read as it is.

        A load that writes to LDS reads one k step of rows, as a transposed one does of rows.
        The thread's next loads read the steps beside it.
        """
        in_row = self.mma.unit(self.mma.k)
        row = LdsRow.of(in_row, self.item, tile, memory.adjacent)
        whole = copy_of(tile, piece, memory, self.threads, row)
        if not self.loads_to_lds:
            return whole
        row = LdsRow(in_row, self.item, padding=0)
        return _again(copy_of(tile, piece, memory, self.threads, row), whole)

    def transposed(self, unit: int, piece: Pair, memory: Memory, tile: Pair) -> Copy:
        """The copy of an operand that lanes read transposed: rows and gemm_k change places.

        A load reads a step of rows, and the thread's next loads the steps beside it. Between two of
        them come loads of the other operand, by which L1 loses the lines.
        """
        turned = tile[::-1]
        swapped = Memory(memory.adjacent[::-1], memory.run[::-1], memory.pitch)
        row = LdsRow(unit, self.item, padding=transposed_padding(unit * self.item.bytes))
        found, whole = (
            copy_of(turned, piece[::-1], swapped, self.threads, one)
            for one in (row, LdsRow.of(unit, self.item, turned, swapped.adjacent))
        )
        again = _again(found, whole).again_bytes
        return found._replace(line_bytes=again, again_bytes=again)
