# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a wave of the matrix kernel executes in one iteration of its main loop, term by term.

`conv_compiler.model` reads machine code. Here the same counts follow from the numbers of a
schedule, so that tilings are ranked before one is compiled. The constants are those of
`cost_constants.LoopInstructions`, in which each term is linear; `tools/fit/gpu_counts.py` fits
them. A term is in wave-instructions an iteration unless it says otherwise.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import Counts, counted
from conv_compiler.strategies.gpu.address_costs import address_costs, has_batch_alone
from conv_compiler.strategies.gpu.cost_constants import LDS_LOADS, LOOP, LoopInstructions
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.lds_copies import (
    TRANSPOSED_READ_BYTES,
    WIDEST_READ_BYTES,
    Copy,
    width_class,
)
from conv_compiler.strategies.gpu.loop_lines import line_bytes
from conv_compiler.strategies.gpu.loop_order import along_gemm_k, runs_ahead
from conv_compiler.strategies.gpu.operand_copies import operand_copies
from conv_compiler.strategies.gpu.tail_masking import NO_TAIL, Tail, is_cdna
from conv_compiler.strategies.gpu.tilings import transposed_sides, writes_single_elements
from conv_compiler.targets.f8 import operand_bytes

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import GpuTiling
    from conv_compiler.targets import Mma, Target


class Iteration(NamedTuple):
    """One iteration: up to its second barrier, from there on, and its loads from memory."""

    compute: Counts
    store: Counts
    loads: int


@lru_cache(maxsize=4096)
def main_loop(
    problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma, tail: Tail = NO_TAIL
) -> Iteration:
    """What a wave executes in one iteration, where rows have the `tail` that must be masked."""
    loop = LoopTerms(problem, target, tiling, mma)
    valu = loop.valu(tail)
    compute = counted(
        **loop.products(),
        **loop.loads(),
        **loop.fragment_reads(),
        valu=valu,
        valu_slots=valu,
        salu=LOOP.iteration_salu_instructions,
        barriers=1,
    )
    return Iteration(compute, loop.lds_writes(), loop.a.loads + loop.b.loads)


class LoopTerms:
    """The terms of one tiling's main loop; `a` and `b` are the copies of its operands."""

    def __init__(self, problem: ConvProblem, target: Target, tiling: GpuTiling, mma: Mma) -> None:
        self.problem, self.target, self.tiling, self.mma = problem, target, tiling, mma
        self.size, self.lanes = operand_bytes(problem, target), target.subgroup_size
        self.transposed = transposed_sides(problem, target, mma, tiling)
        self.a, self.b = operand_copies(problem, target, tiling, mma)
        self.image = self.a if tiling.taps_in_rows else self.b
        self.gradient = self.b if tiling.taps_in_rows else self.a

    @cached_property
    def _instructions(self) -> tuple[int, int]:
        """Matrix instructions of a subgroup along m and along n."""
        (m, n, _), (subgroups_m, subgroups_n) = self.tiling.workgroup, self.tiling.subgroups
        return m // subgroups_m // self.mma.m, n // subgroups_n // self.mma.n

    @property
    def _steps(self) -> int:
        """Matrix instructions along gemm_k."""
        return self.tiling.workgroup[2] // self.mma.k

    def products(self) -> dict[str, float]:
        """Matrix instructions: m x n x gemm_k of a subgroup over those of one instruction."""
        mma = self.mma
        matrix = math.prod(self._instructions) * self._steps
        return {
            "matrix": matrix,
            "matrix_cycles": matrix * mma.subgroup_cycles,
            "matrix_flops": 2 * matrix * mma.m * mma.n * mma.k,
        }

    def loads(self) -> dict[str, float]:
        """Loads from memory, and what they move: dwords of a lane, bytes of all lanes."""
        a, b = self.a, self.b
        return {
            "loads": a.loads + b.loads,
            "load_dwords": max(a.dwords, a.loads) + max(b.dwords, b.loads),
            "load_bytes": (a.dwords + b.dwords) * DWORD * self.lanes,
            "line_bytes": line_bytes(self.problem, self.target, self.tiling, self.mma),
        }

    def fragment_reads(self) -> dict[str, float]:
        """LDS reads: bytes of all fragments of a lane over those of one instruction's smaller."""
        mma, (own_m, own_n) = self.mma, self._instructions
        a_lane = mma.k * self.size / self.lanes
        if min(along_gemm_k(self.problem, self.target)) > 1:
            # Not of transposed operands: weight gradients chosen by it take 1.2 times as long.
            a_lane *= mma.operand_holders
        whole = min(min(mma.m, mma.n) * a_lane, WIDEST_READ_BYTES)
        found: dict[str, float] = {}
        for rows, transposed in zip((own_m * mma.m, own_n * mma.n), self.transposed, strict=True):
            width = TRANSPOSED_READ_BYTES if transposed else whole
            name = f"lds_reads_{width_class(width)}"
            found[name] = found.get(name, 0.0) + rows * a_lane * self._steps / width
        return found

    def lds_writes(self) -> Counts:
        """LDS writes of both copies by their width, and the cycles of all lanes' conflicts."""
        if self.tiling.loads_to_lds:  # as wide as they are, and without a second barrier
            return counted(lds_writes_16=self.a.loads + self.b.loads)
        writes = {4: 0, 8: 0, 16: 0}
        for copy in (self.a, self.b):
            writes[copy.write_bytes] += copy.writes
        conflicts = (self.a.write_conflicts + self.b.write_conflicts) * self.lanes
        return counted(
            barriers=1,
            lds_conflict_cycles=conflicts,
            lds_writes_4=writes[4],
            lds_writes_8=writes[8],
            lds_writes_16=writes[16],
        )

    def valu(self, tail: Tail = NO_TAIL, costs: LoopInstructions = LOOP) -> float:
        """Vector instructions: the sum of the terms below. It is linear in `costs`."""
        found = (
            costs.iteration_valu_instructions
            + self.addresses(costs)
            + self.scalar_loads(costs)
            + self.transposition()
            + self.window_zeros(tail)
            + self.place_tests(costs)
        )
        found += self.tail_zeros(tail)
        if is_cdna(self.target):
            found += self.tail_tests(tail, costs) + self.tap_tests(costs)
            found += self.channel_tail(tail, costs)
        return found

    def addresses(self, costs: LoopInstructions) -> float:
        """Rows of each operand x its instructions a row, less what an interleaved loop saves."""
        a, b, tiling = self.a, self.b, self.tiling
        loops = (tiling.outside, tiling.inside)
        each = address_costs(self.problem, self.target, loops, tiling.taps_in_rows, costs)
        found = a.rows * each.a + b.rows * each.b
        is_counted = has_batch_alone(self.problem, self.target, loops) and tiling.merged_groups == 1
        if runs_ahead(tiling) and is_counted:
            found -= costs.interleaved_saved_instructions
            found -= costs.interleaved_saved_row_instructions * (a.rows + b.rows)
        return found

    def scalar_loads(self, costs: LoopInstructions) -> float:
        """Each load beyond the first of a row x its test and packing."""
        a, b = self.a, self.b
        return (a.loads + b.loads - a.rows - b.rows) * costs.scalar_load_instructions

    def transposition(self) -> float:
        """Registers whose elements come from different loads x (elements of a register - 1).

        Elements of adjacent gemm_k share a register, but for those that are written one by one.
        """
        single = writes_single_elements(self.target, self.size) and self.problem.g == 1
        sides = ((self.a, self.tiling.copy_a), (self.b, self.tiling.copy_b))
        packed = sum(copy.packed for copy, piece in sides if not (single and piece[1] == 1))
        return packed * (DWORD / self.size - 1)

    def window_zeros(self, tail: Tail) -> float:
        """Registers of the operand with windows, where they may leave it."""
        problem = self.problem
        leaves = any((*problem.pad_low, *problem.pad_high)) and not self._has_one_place
        flat_tail = tail.is_masked and not self.tiling.outside
        return self._zeros(self.image) if leaves or flat_tail else 0.0

    def place_tests(self, costs: LoopInstructions) -> float:
        """Rows of an image that lies along gemm_k x the tests of their places."""
        problem = self.problem
        leaves = any((*problem.pad_low, *problem.pad_high))
        if not leaves or not self._lies_along_gemm_k or self._has_one_place:
            return 0.0
        if self.tiling.loads_to_lds:  # the loads have their tests, which `window_zeros` counts
            return 0.0
        cdna = is_cdna(self.target)
        row = costs.cdna_place_row_instructions if cdna else costs.place_row_instructions
        return self.image.rows * row

    @property
    def _has_one_place(self) -> bool:
        """Whether all rows of an image are at one tap and one pixel: a scalar test finds whether
        that leaves the image."""
        channels = self.problem.c * self.tiling.merged_groups
        return self._has_rows_of_pixels and channels % self.tiling.workgroup[1] == 0

    @property
    def _has_rows_of_pixels(self) -> bool:
        """Whether rows of the image's tile are a pixel each, on RDNA: it lies along gemm_k."""
        return self._lies_along_gemm_k and not is_cdna(self.target)

    @property
    def _lies_along_gemm_k(self) -> bool:
        """Whether the image lies along gemm_k in whole rows of its tile."""
        along = along_gemm_k(self.problem, self.target)[1]
        return along >= self.tiling.workgroup[2] and not self.tiling.taps_in_rows

    def _zeros(self, copy: Copy) -> float:
        """Vector instructions that put zeros where there are no pixels."""
        if self.tiling.loads_to_lds:
            return copy.loads * LDS_LOADS.tested_load_instructions
        return copy.dwords

    def tail_zeros(self, tail: Tail) -> float:
        """Registers of the operand that gets zeros where there are no pixels."""
        if not tail.is_masked:
            return 0.0
        return self._zeros({"a": self.b, "b": self.a}.get(tail.unmasked, self.gradient))

    def tail_tests(self, tail: Tail, costs: LoopInstructions) -> float:
        """Rows of both operands x the test whether there is a pixel."""
        rows = self.a.rows + self.b.rows if tail.is_masked else 0
        pointwise = self.problem.is_pointwise
        return rows * (
            costs.tail_row_instructions if pointwise else costs.tail_window_row_instructions
        )

    def tap_tests(self, costs: LoopInstructions) -> float:
        """What it takes where lanes of a tile have different taps."""
        tiling = self.tiling
        if tiling.taps_in_rows:
            return costs.row_taps_instructions
        in_columns = tiling.outside and not tiling.taps_outside and not self.problem.is_pointwise
        if not in_columns or tiling.merged_groups > 1:
            return 0.0
        rows = self.image.rows * costs.column_taps_row_instructions
        return costs.column_taps_instructions + rows

    def channel_tail(self, tail: Tail, costs: LoopInstructions) -> float:
        """Registers and tested rows of the gradient, where its channels do not fill the tile."""
        tiling = self.tiling
        channels = self.problem.k * tiling.merged_groups
        is_masked = not tiling.taps_in_rows and "a" not in tail.rows
        if not is_masked or channels % tiling.workgroup[0] == 0:
            return 0.0
        return self._zeros(self.gradient) + costs.tail_row_instructions * self.gradient.rows
