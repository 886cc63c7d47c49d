# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a forward pass or data gradient as a direct convolution for the CPU.

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places: pads, a weight arranged by phases, phases put in place, an elementwise op.
After, two dispatch regions, behind one that widens the source where single elements of it are read:

    forall blocks of channels                                    workgroups
      packed = the weights, as vectors of lanes
    forall image, plane, rows, shares of the channels            workgroups
      for blocks of channels, rows                               `inner_blocks`: blocks innermost
        for tiles of adjacent pixels                             sums in registers
          for planes and rows of taps that are inside            no pads
            for source channels
              sums[pixels][lanes] += source[pixels] * packed[lanes]
          result = epilogue(sums)                                whole vectors

Taps along a row are known where the kernel is written: tiles at either end of a row leave out what
they would read outside. A data gradient's phases are planes, rows and columns with taps of
their own (`problem/slides.py`), so no product is by a zero between strided pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.passes.depthwise_parts.operands import Operand, Result
from conv_compiler.passes.direct_parts.groups import Groups
from conv_compiler.passes.direct_parts.kernel import Kernel
from conv_compiler.passes.direct_parts.lanes import Lanes
from conv_compiler.passes.direct_parts.neighbours import Paired
from conv_compiler.passes.direct_parts.options import PAIRS, TILES, WINDOWS, DirectOptions
from conv_compiler.passes.direct_parts.products import Results
from conv_compiler.passes.direct_parts.regions import rewrite
from conv_compiler.passes.direct_parts.sources import Sources
from conv_compiler.passes.direct_parts.tiles import Tiled
from conv_compiler.passes.direct_parts.windows import Windows

PRODUCTS: MappingProxyType[str, type[Lanes]] = MappingProxyType(
    {
        "results": Results,
        "groups": Groups,
        "sources": Sources,
        PAIRS: Paired,
        WINDOWS: Windows,
        TILES: Tiled,
    }
)


@dataclass(frozen=True, kw_only=True)
class DirectKernel(DirectOptions):
    """The pass; its options are those of `DirectOptions`."""

    name: ClassVar[str] = "direct-kernel"

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if it is not of the sizes in the options."""
        if self.product not in PRODUCTS:
            raise UnsupportedStrategy(
                f"product {self.product}: not in the table; known: {', '.join(PRODUCTS)}"
            )
        rewrite(module, self._result, self.rounding)

    def _result(
        self, source: Operand, weight: Operand, result: Result, element: ir.Type
    ) -> ir.Value:
        lanes = PRODUCTS[self.product](self, weight, element)
        source = lanes.source(source)
        packed = lanes.packing().region()
        return Kernel(self, lanes, source, result).value(packed)
