# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a distribution of work costs: the cycles of copies, sums and waits, term by term.

The constants are in `cost_constants.py`; `tools/fit/cpu_costs.py` fits those of `KernelCosts`, in
which all terms are linear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from conv_compiler.build.bwd_weight import FILTER_LOOPS
from conv_compiler.strategies.cpu.cost_constants import (
    MEMORY,
    MOVES,
    NEIGHBOURS,
    KernelCosts,
    costs_of,
)
from conv_compiler.strategies.cpu.operand_packing_cost import (
    NEITHER,
    Chunk,
    Copy,
    copies,
    factors_of,
    lie_ready,
)
from conv_compiler.strategies.cpu.register_tiles import lanes_of, loop_sizes
from conv_compiler.strategies.cpu.split_k import NO_DEEP_LOOP, deep_loop, part_lengths
from conv_compiler.strategies.cpu.workgroup_shares import in_runs, load_imbalance
from conv_compiler.targets.host import STACK_BYTES, TILE_INSTRUCTIONS
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.strategies.cpu_tilings import CpuTiling
    from conv_compiler.targets.processors import Processor

# The parallel loops that image and gradient have not: workgroups that differ in these alone copy
# the same.
_WITHOUT = (("k",), (*FILTER_LOOPS, "c"))


class _Grid(NamedTuple):
    """Shares of each parallel loop in a part, workgroups of all parts, chunks of a workgroup."""

    shares: Mapping[str, int]
    workgroups: int
    chunks: int


class _OperandCost(NamedTuple):
    """Cycles of an operand: to read it directly, to read it packed, to start the kernel that packs,
    to copy it; and the bytes of its packed copies."""

    direct: float = 0.0
    read: float = 0.0
    start: float = 0.0
    copy: float = 0.0
    packed_bytes: int = 0


class DistributionCost:
    """What all distributions of a problem, its register tiles and its parts have in common."""

    def __init__(
        self,
        problem: ConvProblem,
        tiling: CpuTiling,
        split_k: int,
        processor: Processor,
        costs: KernelCosts | None = None,
    ) -> None:
        self.problem, self.tiling, self.split_k = problem, tiling, split_k
        self.processor, self.cores, self.unit = processor, processor.cores, processor.unit
        self.tile = {p: t for p, t in zip(tiling.loops, tiling.vector_parallel, strict=True) if t}
        self.counts = {p: -(-loop_sizes(problem)[p] // t) for p, t in self.tile.items()}
        self.lengths = part_lengths(problem, tiling, split_k)
        self.has_amx = tiling.instruction in TILE_INSTRUCTIONS
        self.deep = deep_loop(self.lengths) if self.has_amx else NO_DEEP_LOOP
        self.costs = costs or costs_of(tiling.instruction, processor.costs)
        self.factors = factors_of(tiling.instruction)
        self.lanes, self.bytes = lanes_of(self.unit, problem), problem.accumulator_type.bytes
        self.multiplying = problem.flops / 2 / self.lanes * self.costs.multiply_cycles
        elements = math.prod(problem.input_shape) + math.prod(problem.output_shape)
        self.data_bytes = problem.data_type.bytes
        self.memory_bytes = elements * self.factors * self.data_bytes
        self.far_line_cycles = next(
            cycles for size, cycles in MEMORY.far_line_cycles if self.memory_bytes > size
        )

    def copies(self, chunk: Chunk, packs_first: bool) -> tuple[Copy, Copy]:
        """The copies of image and gradient for a chunk."""
        direct = NEITHER
        if self.factors == 1 and not packs_first:
            direct = lie_ready(self.problem, self.tile, chunk, self.lengths, self.split_k)
        return copies(self.problem, chunk, self.unit, self.deep, direct)

    def cycles(self, chunk: Chunk, packs_first: bool) -> float:
        """Cycles of all cores but for the multiplying itself.

        With T the sum of `terms`, M the multiplying and I the load imbalance of the workgroups:
        T + I (M + T).
        """
        grid, total = self._grid(chunk), 0.0
        for term in self.terms(chunk, packs_first):
            total += term
        imbalance = load_imbalance(grid.workgroups, self.cores)
        return total + imbalance * (self.multiplying + total)

    def _grid(self, chunk: Chunk) -> _Grid:
        shares = {p: self.counts[p] * self.tile[p] // size for p, size in chunk.share.items()}
        return _Grid(
            shares=shares,
            workgroups=self.split_k * math.prod(shares.values()),
            chunks=math.prod(-(-self.lengths[p] // chunk.cache[p]) for p in self.lengths),
        )

    def terms(self, chunk: Chunk, packs_first: bool) -> Iterator[float]:
        """Each term in cycles: partial sums, the operands, page faults, sums, loops, neighbours."""
        grid, both = self._grid(chunk), self.copies(chunk, packs_first)
        yield self._partials(chunk, grid)
        packed_bytes = 0
        for without, copy in zip(_WITHOUT, both, strict=True):
            times = grid.workgroups
            if packs_first:
                times //= math.prod(grid.shares.get(p, 1) for p in without)
            operand = self._operand(copy, grid, times, packs_first)
            yield from operand[:4]
            packed_bytes += operand.packed_bytes
        if packed_bytes > MEMORY.kept_bytes:
            yield packed_bytes / MEMORY.page_bytes * MEMORY.fault_cycles
        on_stack = 0 if packs_first else sum(copy.on_stack for copy in both)
        yield grid.workgroups * grid.chunks * self._sums(chunk, on_stack, grid.chunks)
        yield self._loops(chunk)
        yield self._neighbours(grid)

    def _partials(self, chunk: Chunk, grid: _Grid) -> float:
        """Partial sums of all workgroups in vectors x moves of each x cycles of a move."""
        if self.split_k == 1:
            return 0.0
        sums = math.prod(chunk.share.values()) / self.lanes
        size = grid.workgroups * sums * self.lanes * self.bytes
        near = size <= MEMORY.near_partials_bytes
        each = MEMORY.move_cycles if near else MEMORY.far_move_cycles
        return MOVES.partial_times * grid.workgroups * sums * each

    def _operand(self, copy: Copy, grid: _Grid, times: int, packs_first: bool) -> _OperandCost:
        """What an operand takes that is copied `times` for each chunk.

        A copy takes rows x cycles of a row + vectors x cycles of a vector, for each image of an
        element, + vectors x cycles of a line. What is packed first is written and read besides.
        """
        costs, chunks = self.costs, grid.chunks
        vectors = copy.elements / self.lanes
        if copy.is_direct:
            return _OperandCost(direct=times * chunks * vectors * MEMORY.direct_cycles)
        once = self.factors * (copy.rows * costs.row_cycles + vectors * costs.vector_cycles)
        once += vectors * costs.line_cycles
        if not self.has_amx and copy.run * self.data_bytes < MEMORY.page_bytes:
            size = copy.elements * self.factors * self.data_bytes
            once += size / LINE_BYTES * self.far_line_cycles
        if not packs_first:
            return _OperandCost(copy=times * chunks * once)
        once += vectors * costs.write_cycles
        once *= 1 + load_imbalance(times * chunks, self.cores)
        return _OperandCost(
            read=grid.workgroups * chunks * vectors * costs.read_cycles,
            start=MEMORY.start_cycles,
            copy=times * chunks * once,
            packed_bytes=times * chunks * copy.elements * self.bytes,
        )

    def _sums(self, chunk: Chunk, on_stack: int, chunks: int) -> float:
        """What a workgroup's sums take in a chunk, with so many elements of copies on the stack.

        Register tiles x cycles to start one, + vectors of sums x cycles to load and store one.
        """
        costs, sums = self.costs, math.prod(chunk.share.values())
        starts = math.prod(size // self.tile[p] for p, size in chunk.share.items())
        if self.has_amx:
            fits = (on_stack + sums) * self.bytes <= STACK_BYTES
            near = fits or self._row_bytes < MEMORY.page_bytes
        else:
            near = sums * self.bytes <= MEMORY.near_sums_bytes
        each = costs.sums_cycles if near else costs.far_sums_cycles
        are_moved = not self.has_amx or chunks > 1
        return starts * costs.tile_cycles + (sums / self.lanes * each if are_moved else 0)

    @property
    def _row_bytes(self) -> int:
        """Bytes from row to row of the sums in the result: taps and lanes lie inside."""
        inner = [p for p in self.tile if p in FILTER_LOOPS] + [list(self.tile)[-1]]
        return math.prod(self.counts[p] * self.tile[p] for p in inner) * self.bytes

    def _loops(self, chunk: Chunk) -> float:
        """Register tiles x products of each / length of the innermost loop x cycles of a loop."""
        tiles, inner = math.prod(self.counts.values()), list(chunk.cache.values())[-1]
        return tiles * self.problem.gemm_k / inner * self.costs.loop_cycles

    def _neighbours(self, grid: _Grid) -> float:
        """What multiplying takes longer where neighbouring workgroups go to several cores, less
        what the operands save that come from memory once; 0 at least."""
        apart = self.cores > 1 and not in_runs(grid.workgroups, self.cores)
        if not apart or math.prod(n for p, n in grid.shares.items() if p != "g") == 1:
            return 0.0
        longer = NEIGHBOURS.apart_share * self.multiplying
        return max(0.0, longer - NEIGHBOURS.once_cycles * self.memory_bytes)
