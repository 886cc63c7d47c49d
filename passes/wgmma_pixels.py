# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a forward pass or data gradient as a GEMM of wave groups (sm_90a), stored in place.

With another `instruction` waves of sm_80 and later multiply fragments that they read from LDS
(`wgmma_parts/wave_products.py`).

Before: the contraction of the equivalent weight gradient, and what brings its operands and its
result into their places: pads, a weight arranged by phases, phases put in place, an elementwise op.
After, a kernel written down to its addresses:

    workgroup (pixel tile, channel tile, phase, part and group)
      copy the first tiles to stages 0, 1 ... of LDS               cp.async, no registers
      for tile of the part: channels of a tap that the phase has
        wait for this tile's copies; barrier
        start sums += source(tile) * weight(tile)                  wgmma, operands from LDS
        wait for the products of the tile before
        copy a later tile to the stage that is free                zeros where there is no pixel
      result pixels of the phase = op(sums)                        by way of LDS, in whole lines

With `row_workgroups` a workgroup goes through several pixel tiles. It copies the weight of all taps
and channels first, and the copies of the next tile's source go on while it stores sums.

With a `tail` the workgroups behind a number have smaller tiles, of the last rows.

Taps of a phase are known where the kernel is written (`problem/slides.py`), so no product is by a
zero between strided pixels. The weight is read as the program has it. With several parts a second
kernel adds them in a fixed order, and applies the op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.wgmma_parts.padded_channels import with_whole_pieces
from conv_compiler.passes.wgmma_parts.pixel_kernel import PixelKernel
from conv_compiler.passes.wgmma_parts.pixel_sizes import PixelSizes
from conv_compiler.passes.wgmma_parts.reduction import Reduction
from conv_compiler.passes.wgmma_parts.rewriting import Replaced, rewrite
from conv_compiler.passes.wgmma_parts.stationary_kernel import StationaryKernel
from conv_compiler.passes.wgmma_parts.tail_kernel import TailKernel
from conv_compiler.passes.wgmma_parts.transposed_weight import along_sources


@dataclass(frozen=True, kw_only=True)
class WgmmaPixels(PixelSizes):
    """Options: those of `PixelSizes`, and how a workgroup of the second kernel shares the parts."""

    name: ClassVar[str] = "wgmma-pixels"
    sum_threads: int = 256
    sum_slices: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy if there is none or more than one, if ops
        are applied to its operands, or if a bias is added and channels of groups lie apart."""
        self.check()
        apart = self.groups_outside and self.groups > 1
        channels = 0 if apart else self.groups * self.results
        rewrite(module, self.name, channels, lambda found: self._result(module, found))

    @property
    def kernel(self) -> PixelKernel:
        """The kernel that multiplies."""
        if self.tail:
            return TailKernel(self)
        return (StationaryKernel if self.row_workgroups else PixelKernel)(self)

    def _result(self, module: ir.Module, found: Replaced) -> ir.Value:
        self.check_operand(found.operands[0])
        source, weight = found.operands
        whole = [
            with_whole_pieces(module, source, self.sources, "whole_source", self.piece),
            along_sources(module, weight, self)
            if self.transposes_weight
            else with_whole_pieces(
                module, weight, self.weight_channels, "whole_weight", self.piece
            ),
        ]
        kernel = self.kernel
        if self.split_k == 1:
            return kernel.result(module, whole, found.type, found.epilogue, found.extra)
        partials = ir.RankedTensorType.get([self.split_k, *found.type.shape], found.accumulator)
        parts = kernel.result(module, whole, partials)
        reduction = Reduction(threads=self.sum_threads, slices=self.sum_slices)
        return reduction.result(module, parts, found.type, found.epilogue, found.extra)
