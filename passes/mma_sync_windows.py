# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite a weight gradient of small groups as products of waves (sm_80 and later) whose image is
copied to LDS once.

Before: one linalg.generic with the loops (g, k, taps, c | n, pixels).
After, kernels written down to their addresses. The first stores P[s, weight's axes] in f32:

    workgroup (merged groups, part)
      for tile of output pixels of the part
        copy the tile of the output gradient, and its window of the image    cp.async
        wait; barrier
        for 16 pixels of the tile
          for two eights of (tap, source channels), and group
            sums += window(taps) * gradient                                  ldmatrix, mma.sync
      store the sums

Rows of a product are source channels of two taps, columns are channels of the output gradient. So
nothing of one group is multiplied by anything of another where channels of groups come in eights.
Fewer than eight are joined with those of adjacent groups, and only their own products are stored.

The second kernel adds the parts in rising order, as of `passes/wgmma_gemm.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from conv_compiler.passes.implicit_gemm_parts.contraction import Contraction
from conv_compiler.passes.wgmma_parts.gradient_kernel import GradientKernel
from conv_compiler.passes.wgmma_parts.gradient_sizes import GradientSizes
from conv_compiler.passes.wgmma_parts.reduction import Reduction, replace_weight


@dataclass(frozen=True, kw_only=True)
class MmaSyncWindows(GradientSizes):
    """Options: those of `GradientSizes`, and how a workgroup of the second kernel shares the
    parts."""

    name: ClassVar[str] = "mma-sync-windows"
    sum_threads: int = 256
    sum_slices: int = 1

    def apply(self, module: ir.Module) -> None:
        """Rewrite the contraction; UnsupportedStrategy where its channels are not adjacent, or
        where no kernel has such a tile."""
        reduction = Reduction(threads=self.sum_threads, slices=self.sum_slices)

        def kernel(conv: Contraction, type: ir.RankedTensorType) -> ir.Value:
            return GradientKernel(conv, self).result(module, type)

        replace_weight(module, self.parts, reduction, kernel)
