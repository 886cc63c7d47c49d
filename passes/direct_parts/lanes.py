# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the ways to fill the lanes of a direct kernel have in common (`products.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from conv_compiler.ir import ops
from conv_compiler.passes.cpu_kernel.indices import times
from conv_compiler.passes.direct_parts.moves import channels_last
from conv_compiler.passes.direct_parts.packing import Packing, loaded, widened
from conv_compiler.passes.direct_parts.runs import Run, runs

if TYPE_CHECKING:
    from conv_compiler.passes.depthwise_parts.operands import Operand
    from conv_compiler.passes.direct_parts.options import DirectOptions
    from conv_compiler.problem.slides import Slide


@dataclass(frozen=True, kw_only=True)
class TapRow:
    """A row of taps of a register tile of a run.

    `source` gives the address of the pixel that the tile reads so many columns from its first unit
    on, `weights` that of a column tap. They are addresses in `tensor`, whose elements `operand`
    makes the source's, and in `packed`.
    """

    run: Run
    source: Callable[[int], ir.Value]
    weights: Callable[[int], ir.Value]
    operand: Operand
    tensor: ir.Value
    packed: ir.Value


class Lanes(ABC):
    """A way to fill the lanes. `blocks` register tiles hold all result channels of a pixel."""

    def __init__(self, options: DirectOptions, weight: Operand, element: ir.Type) -> None:
        self.options, self.weight, self.element = options, weight, element
        self.vector = ir.VectorType.get([options.lanes], element)

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Register tiles that hold all result channels of a pixel."""

    @property
    @abstractmethod
    def block_channels(self) -> int:
        """Result channels of a register tile."""

    @property
    def row_taps(self) -> int:
        """Taps along a row that the packed weights have apart."""
        return self.options.taps[-1]

    @property
    @abstractmethod
    def tap_size(self) -> int:
        """Elements of the packed weights of a block and a tap."""

    def result_channel(self, block: ir.Value) -> ir.Value:
        """The first result channel of a block."""
        return times(block, self.block_channels)

    @abstractmethod
    def packing(self) -> Packing:
        """The kernel that packs the weights: [block, row tap, column tap, ...]."""

    @abstractmethod
    def source_channel(self, block: ir.Value) -> ir.Value:
        """The first source channel of a pixel that a block reads."""

    @abstractmethod
    def add(self, sums: list[ir.Value], tap_row: TapRow) -> list[ir.Value]:
        """Sums with the products of a row of taps."""

    def source(self, source: Operand) -> Operand:
        """The source as it is read: itself, or a copy that a kernel of its own makes."""
        if self.options.source_images:
            tensor = channels_last(source, self.element, self.options.source_rows)
            return replace(source, tensor=tensor, steps=())
        return source

    def begin(self, source: ir.Value, packed: ir.Value) -> None:  # noqa: B027
        """Make what a workgroup's tiles have in common."""

    def runs(self, slide: Slide, phase: int) -> list[Run]:
        """The register tiles of a row of a phase."""
        return runs(slide, phase, self.options.columns)

    def settled(self, sums: list[ir.Value]) -> list[ir.Value]:
        """Whole sums, as `results` takes them."""
        return sums

    def zeros(self, units: int) -> list[ir.Value]:
        """Sums of nothing of so many pixels."""
        zero = vector.BroadcastOp(self.vector, ops.zero(self.element)).result
        return [zero] * (units * self.options.vectors)

    def results(self, sums: list[ir.Value], unit: int) -> list[ir.Value]:
        """The result channels of a pixel of a tile, in vectors that lie one behind another."""
        count = self.options.vectors
        return sums[unit * count : (unit + 1) * count]

    def multiply_add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """total + a * b: one instruction where the CPU has it."""
        if isinstance(self.element, ir.IntegerType):
            return arith.AddIOp(total, arith.MulIOp(a, b).result).result
        contract = arith.FastMathFlags.contract
        product = arith.MulFOp(a, b, fastmath=contract).result
        return arith.AddFOp(product, total, fastmath=contract).result

    def elements(self, tap_row: TapRow, at: ir.Value) -> ir.Value:
        """Adjacent elements of the source, a vector of the sums' type."""
        values = loaded(tap_row.tensor, at, self.options.lanes)
        return widened(tap_row.operand.applied(values), self.element)
