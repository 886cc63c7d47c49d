# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a depthwise tiling needs and how long it takes: its strips, registers, counts and seconds.

A thread computes the filter gradients of some adjacent groups from strips of output pixels:
`rows` x `columns`, in iterations of `unroll` rows (`passes/depthwise.py`). It keeps the window of
the image in registers. Rows that the next window has too are not loaded again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.model.counts import Counts, KernelCounts, counted
from conv_compiler.model.estimate import estimate
from conv_compiler.model.facts import rank_facts
from conv_compiler.model.launch import Launch
from conv_compiler.strategies.gpu.cost_constants import DEPTHWISE, SLACK, DepthwiseInstructions
from conv_compiler.strategies.gpu.lds_banks import DWORD
from conv_compiler.strategies.gpu.split_k_reduction import reduction_seconds, sums_of_few

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.strategy import DepthwiseTiling
    from conv_compiler.targets import Target


class RowAxis(NamedTuple):
    """The spatial dimension before the last: output rows, filter taps, stride and dilation."""

    outputs: int
    taps: int
    stride: int
    dilation: int


def row_axis(problem: ConvProblem) -> RowAxis:
    """The rows of a problem; a single one in one dimension."""
    if problem.ndim == 1:
        return RowAxis(1, 1, 1, 1)
    return RowAxis(
        problem.out_image[-2], problem.filter[-2], problem.stride[-2], problem.dilation[-2]
    )


def kept_rows(problem: ConvProblem) -> int:
    """Rows of a window that the next window has too."""
    rows = row_axis(problem)
    return 0 if rows.stride % rows.dilation else max(0, rows.taps - rows.stride // rows.dilation)


@lru_cache(maxsize=4096)
def reach(problem: ConvProblem, columns: int) -> int:
    """Vectors of the image in a row of the window, over all depths."""
    depth = problem.filter[0] if problem.ndim == 3 else 1
    stride, dilation = problem.stride[-1], problem.dilation[-1]
    taps = problem.filter[-1]
    return depth * len({u * stride + x * dilation for u in range(columns) for x in range(taps)})


def strip_rounds(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Rounds of strips of all parts together; in a round each thread has one strip."""
    depth = problem.out_image[0] if problem.ndim == 3 else 1
    strips = problem.n * depth * -(-row_axis(problem).outputs // tiling.rows)
    strips *= -(-problem.out_image[-1] // tiling.columns)
    return -(-strips // (tiling.threads // tiling.lanes))


def blocks(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Workgroups of a part."""
    return -(-problem.g // (tiling.lanes * tiling.vector))


def vgprs(problem: ConvProblem, tiling: DepthwiseTiling) -> int:
    """Registers of a thread, about: sums, window and gradients, and what later rows load."""
    taps, wide = row_axis(problem).taps, reach(problem, tiling.columns)
    fresh = wide * (taps - kept_rows(problem)) + tiling.columns
    vectors = math.prod(problem.filter) + wide * taps + tiling.columns
    dwords = -(-tiling.vector * problem.data_type.bytes // DWORD)
    later = fresh * (tiling.unroll - 1) * dwords
    return vectors * tiling.vector + later + DEPTHWISE.other_registers


class _Work(NamedTuple):
    """Vector instructions, vector flops and loads of some rows."""

    valu: float
    flops: float
    loads: float


class DepthwiseTerms:
    """The terms of a tiling's cost, in wave-instructions."""

    def __init__(
        self,
        problem: ConvProblem,
        target: Target,
        tiling: DepthwiseTiling,
        costs: DepthwiseInstructions = DEPTHWISE,
    ) -> None:
        self.problem, self.tiling, self.costs = problem, tiling, costs
        self.lanes, self.size = target.subgroup_size, problem.data_type.bytes
        self.taps = math.prod(problem.filter)
        self.reach, self.kept = reach(problem, tiling.columns), kept_rows(problem)
        self.dwords = -(-tiling.vector * self.size // DWORD)
        self.has_packed = rank_facts(target).valu_cycles == 4

    @property
    def product(self) -> float:
        """Instructions for the product of a tap and a column: packed pairs where the chip has them,
        a multiplication and an addition for integers."""
        vector, is_integer = self.tiling.vector, self.problem.data_type.is_integer
        if self.has_packed and not is_integer and vector > 1:
            return vector / 2
        return vector * (1 + is_integer)

    @property
    def load(self) -> float:
        """Instructions for each load: a conversion of each element, a mask where there are pads."""
        convert = 0 if self.size == DWORD else self.tiling.vector
        is_padded = any((*self.problem.pad_low, *self.problem.pad_high))
        mask = self.costs.mask_instructions * self.dwords / 2 if is_padded else 0
        return convert + mask

    def work(self, image_rows: int, out_rows: int) -> _Work:
        """What it takes to load `image_rows` and to multiply `out_rows` of gradients."""
        columns = self.tiling.columns
        loads = image_rows * self.reach + out_rows * columns
        valu = (
            loads * self.load
            + (image_rows + out_rows) * self.costs.row_instructions
            + self.taps * columns * out_rows * self.product
        )
        products = self.taps * columns * out_rows * self.tiling.vector
        return _Work(valu, 2 * products * self.lanes, loads)

    def iteration(self) -> Counts:
        """One iteration: the rows that are new, and moves of those that are kept."""
        tiling = self.tiling
        new_rows = (row_axis(self.problem).taps - self.kept) * tiling.unroll
        one = self.work(new_rows, tiling.unroll)
        is_loop = tiling.unroll < tiling.rows
        moves = self.kept * self.reach * tiling.vector / 2 if is_loop else 0
        moved_bytes = one.loads * tiling.vector * self.size * self.lanes
        return counted(
            valu=one.valu,
            valu_slots=one.valu + moves,
            vector_flops=one.flops,
            loads=one.loads,
            load_dwords=one.loads * self.dwords,
            load_bytes=moved_bytes,
            line_bytes=moved_bytes,
        )

    def outside(self, rounds: int) -> Counts:
        """The start of each strip in so many rounds, and the sum over a workgroup's threads."""
        tiling, start = self.tiling, self.work(self.kept, 0)
        together = tiling.threads // tiling.lanes
        items = self.taps * tiling.lanes / tiling.threads
        valu = rounds * (start.valu + self.costs.strip_instructions)
        added = items * together * tiling.vector
        return counted(
            valu=valu,
            valu_slots=valu + added,
            loads=rounds * start.loads,
            load_dwords=rounds * (start.loads * self.dwords),
            line_bytes=rounds * (start.loads * tiling.vector * self.size * self.lanes),
            lds_writes_4=self.taps * tiling.vector,
            lds_reads_4=added,
            stores=items,
            store_dwords=items * tiling.vector,
        )


def launch_of(
    problem: ConvProblem, target: Target, tiling: DepthwiseTiling, split_k: int
) -> Launch:
    """How the kernel is launched, with the registers that it needs about."""
    elements = math.prod(problem.input_shape) + math.prod(problem.output_shape)
    sums = math.prod(problem.filter) * tiling.vector
    return Launch(
        workgroups=split_k * blocks(problem, tiling),
        waves=-(-tiling.threads // target.subgroup_size),
        vgprs=vgprs(problem, tiling),
        lds_bytes=sums * DWORD * tiling.threads,
        read_bytes=elements * problem.data_type.bytes,
        written_bytes=split_k * math.prod(problem.weight_shape) * DWORD,
    )


@lru_cache(maxsize=16384)
def predict(problem: ConvProblem, target: Target, tiling: DepthwiseTiling, split_k: int) -> float:
    """Modelled seconds of a problem with a tiling and a split-K factor, the reduction included."""
    terms = DepthwiseTerms(problem, target, tiling)
    rounds = -(-strip_rounds(problem, tiling) // split_k)
    counts = KernelCounts(
        body=(terms.iteration(),),
        iterations=rounds * tiling.rows // tiling.unroll,
        outside=terms.outside(rounds),
        source="predicted",
    )
    launch = launch_of(problem, target, tiling, split_k)
    main = estimate(counts, launch, target, rank_facts(target))
    sums = sums_of_few(problem, target)
    reduction = reduction_seconds(problem, target, split_k, sums)
    return main.seconds + SLACK.serial_share * main.unit_seconds + reduction
