# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a weight gradient as a GEMM of wave groups (sm_90a): operands from LDS, as they lie.

With another `instruction` waves of sm_80 and later multiply fragments that they read from there
(`wgmma_parts/wave_products.py`).

Before: one linalg.generic with the loops (g, k, taps, c | n, pixels).
After, kernels written down to their addresses. The first stores P[s, weight's axes] in f32:

    workgroup (m tile, n tile of a tap, part and group)
      copy the first tiles to stages 0, 1 ... of LDS               cp.async, no registers
      for tile of the part
        wait for this tile's copies; barrier
        start sums += A(tile) * B(tile)                            wgmma, operands from LDS
        wait for the products of the tile before
        copy a later tile to the stage that is free                zeros where there is no pixel
      store the sums

Channels that are no multiple of eight are rounded up by a kernel in front, which copies an operand.

A tile is `tile_k` pixels of the output gradient (`tile_m` channels) and of the image, shifted by
the workgroup's tap (`tile_n` channels). Both have channels side by side in memory and in LDS, and
the instructions take them so: nothing is transposed. A stage is written again two tiles later, so
one barrier a tile is enough. Where channels do not come in 64 the columns of a tile are those of
several taps, and each thread has the tap of its own piece.

The second kernel adds the parts in a fixed order. An epilogue that only rounds is part of it. With
a single part it is part of the first kernel, which is then alone. Any other epilogue is left to the
compiler, behind the sums in f32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts.kernel import Kernel
from conv_compiler.passes.wgmma_parts.padded_channels import with_whole_pieces
from conv_compiler.passes.wgmma_parts.reduction import Reduction, replace_weight
from conv_compiler.passes.wgmma_parts.sizes import Tiles


@dataclass(frozen=True, kw_only=True)
class WgmmaGemm(Tiles):
    """Options: those of `Tiles`, how a workgroup of the second kernel shares the parts, and how
    many adjacent groups are one to the products."""

    name: ClassVar[str] = "wgmma-gemm"
    sum_threads: int = 256
    sum_slices: int = 1
    merged_groups: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy where its channels are not adjacent."""
        self.check()
        reduction = Reduction(threads=self.sum_threads, slices=self.sum_slices)

        def kernel(conv: Contraction, type: ir.RankedTensorType) -> ir.Value:
            self.check_operand(conv.gradient)
            if self.merged_groups == 1:
                conv = _whole(module, conv, self.piece)
            return Kernel(conv, self, self.merged_groups).result(module, type)

        replace_weight(module, self.split_k, reduction, kernel)


def _whole(module: ir.Module, conv: Contraction, size: int) -> Contraction:
    """A contraction whose operands have their channels in whole pieces; its sizes do not change."""
    gradient = with_whole_pieces(module, conv.gradient, conv.gemm_m, "whole_gradient", size)
    image = with_whole_pieces(module, conv.image, conv.channels, "whole_image", size)
    return replace(conv, gradient=gradient, image=image)
