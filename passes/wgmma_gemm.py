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

from conv_compiler.ir.loop_nest import erase_if_dead
from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction, find_contraction
from conv_compiler.passes.implicit_gemm_parts.split_k_reduction import find_epilogue
from conv_compiler.passes.wgmma_parts.kernel import Kernel
from conv_compiler.passes.wgmma_parts.padded_channels import with_whole_pieces
from conv_compiler.passes.wgmma_parts.reduction import Reduction
from conv_compiler.passes.wgmma_parts.sizes import Tiles
from conv_compiler.passes.wgmma_parts.stores import only_rounds


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
        with module.context, ir.Location.unknown():
            conv = find_contraction(module)
            self.check_operand(conv.gradient)
            epilogue = find_epilogue(conv.op)
            last = epilogue if epilogue and only_rounds(epilogue) else conv.op
            with ir.InsertionPoint(last):
                if self.merged_groups == 1:
                    conv = _whole(module, conv, self.piece)
                weight = self._weight(module, conv, ir.RankedTensorType(last.results[0].type))
            last.results[0].replace_all_uses_with(weight)
            erase_if_dead(last)

    def _weight(self, module: ir.Module, conv: Contraction, type: ir.RankedTensorType) -> ir.Value:
        kernel = Kernel(conv, self, self.merged_groups)
        if self.split_k == 1:
            return kernel.result(module, type)
        partials = ir.RankedTensorType.get([self.split_k, *type.shape], conv.accumulator)
        parts = kernel.result(module, partials)
        reduction = Reduction(threads=self.sum_threads, slices=self.sum_slices)
        return reduction.result(module, parts, type)


def _whole(module: ir.Module, conv: Contraction, size: int) -> Contraction:
    """A contraction whose operands have their channels in whole pieces; its sizes do not change."""
    gradient = with_whole_pieces(module, conv.gradient, conv.gemm_m, "whole_gradient", size)
    image = with_whole_pieces(module, conv.image, conv.channels, "whole_image", size)
    return replace(conv, gradient=gradient, image=image)
