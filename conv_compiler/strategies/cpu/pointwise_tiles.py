# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles and workgroups of 1x1 convolutions with pixels in the lanes, by counting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conv_compiler.problem.batching import divisors
from conv_compiler.problem.slides import even_sizes
from conv_compiler.problem.weight_steps import channels
from conv_compiler.strategies.cpu.cost_constants import (
    DIRECT,
    DISTRIBUTIONS,
    POINTWISE,
    REGISTER_TILES,
)
from conv_compiler.strategies.cpu.workgroup_shares import load_imbalance
from conv_compiler.strategies.cpu_tilings import PointwiseTiling
from conv_compiler.targets.host import STACK_BYTES
from conv_compiler.targets.limits import LINE_BYTES

if TYPE_CHECKING:
    from conv_compiler.problem.conv_problem import ConvProblem
    from conv_compiler.targets.host import PairInstruction
    from conv_compiler.targets.processors import Processor


@dataclass(frozen=True, kw_only=True)
class Pointwise:
    """A 1x1 convolution or its data gradient, and the CPU."""

    problem: ConvProblem
    processor: Processor
    instruction: PairInstruction | None

    @property
    def lanes(self) -> int:
        """Pixels of a vector."""
        return self.processor.unit.lanes * 4 // self.problem.accumulator_type.bytes

    @property
    def pixels(self) -> int:
        """Of an image."""
        return math.prod(self.problem.image)

    @property
    def neighbours(self) -> int:
        """Source channels that are multiplied at once."""
        return 2 if self.instruction else 1

    def tilings(self) -> Iterator[tuple[float, PointwiseTiling]]:
        """Register tiles with the cycles of all cores, each with the best of its distributions."""
        _, results = channels(self.problem)
        unit = self.processor.unit
        for vectors in range(1, min(POINTWISE.most_tile_registers, self.pixels // self.lanes) + 1):
            fitting = [
                block
                for block in divisors(results)
                if block * vectors + vectors + 1 <= unit.registers
            ]
            for block in fitting[-POINTWISE.tried_sizes :]:
                found = list(self._distributions(block, vectors))
                if found:
                    yield min(found, key=lambda entry: entry[0])

    def _distributions(self, block: int, vectors: int) -> Iterator[tuple[float, PointwiseTiling]]:
        problem, cores = self.problem, self.processor.cores
        _, results = channels(problem)
        each = problem.n * problem.g
        most = max(DIRECT.most_core_workgroups * cores, each)
        cuts = [
            (by_channels, by_pixels)
            for by_channels in divisors(results // block)
            for by_pixels in divisors(self.pixels)
            if self.pixels // by_pixels >= self.lanes and each * by_channels * by_pixels <= most
        ]
        wanted = DISTRIBUTIONS.core_workgroups * cores
        enough = [cut for cut in cuts if each * math.prod(cut) >= wanted]
        enough.sort(key=math.prod)
        enough = enough[:: -(-len(enough) // POINTWISE.tried_distributions) or 1]
        for by_channels, by_pixels in enough or cuts[-1:]:
            workgroups = each * by_channels * by_pixels
            share, pixels = results // by_channels, self.pixels // by_pixels
            for on_stack in (True, False):
                if on_stack and self._stack_bytes(vectors) > STACK_BYTES:
                    continue
                one = self._workgroup(block, vectors, share, pixels, on_stack=on_stack)
                yield (
                    one * workgroups * (1 + load_imbalance(workgroups, cores)),
                    PointwiseTiling(
                        block=block,
                        vectors=vectors,
                        lanes=self.lanes,
                        channel_shares=by_channels,
                        pixel_shares=by_pixels,
                        on_stack=on_stack,
                        instruction=self.instruction.name if self.instruction else "",
                    ),
                )

    def _stack_bytes(self, vectors: int) -> int:
        """What a workgroup copies of the source at a time."""
        sources, _ = channels(self.problem)
        size = self.problem.accumulator_type.bytes // self.neighbours
        return sources * vectors * self.lanes * size

    def _workgroup(
        self, block: int, vectors: int, share: int, pixels: int, *, on_stack: bool
    ) -> float:
        """Cycles of a workgroup of so many result channels and pixels."""
        problem = self.problem
        sources, _ = channels(problem)
        steps, blocks = sources // self.neighbours, share // block
        total = 0.0
        for size, number in even_sizes(-(-pixels // self.lanes), vectors):
            riffle = size * (self.neighbours - 1)
            copy = steps * (size * POINTWISE.copy_cycles + riffle) if on_stack else 0
            step = self._step(block, size) + (0 if on_stack else riffle)
            tile = DIRECT.tile_cycles + block * size * POINTWISE.store_cycles + steps * step
            total += number * (copy + blocks * tile)
        bytes_ = sources * problem.data_type.bytes + share * problem.result_type.bytes
        weights = share * sources * problem.accumulator_type.bytes / self.neighbours
        lines = pixels * bytes_ / LINE_BYTES * DIRECT.near_line_cycles
        again = blocks * pixels * sources * problem.data_type.bytes / LINE_BYTES
        lines += weights / LINE_BYTES * DIRECT.weight_line_cycles
        lines += 0 if on_stack else again * POINTWISE.again_line_cycles
        return total + lines + DIRECT.workgroup_cycles

    def _step(self, block: int, size: int) -> float:
        """Cycles of the products of a step."""
        costs = REGISTER_TILES
        parts = (
            block * size / costs.started_fma_instructions,
            block / costs.started_broadcast_instructions + size / costs.started_load_instructions,
        )
        most = max(parts)
        return max(most, costs.fma_latency_cycles) + DIRECT.shown_share * (sum(parts) - most)
